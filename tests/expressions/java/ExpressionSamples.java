import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.hadoop.hive.common.FileUtils;
import org.apache.hadoop.hive.common.type.HiveChar;
import org.apache.hadoop.hive.common.type.HiveDecimal;
import org.apache.hadoop.hive.common.type.HiveVarchar;
import org.apache.hadoop.hive.ql.exec.FunctionRegistry;
import org.apache.hadoop.hive.ql.optimizer.ppr.PartitionPruner;
import org.apache.hadoop.hive.ql.plan.ExprNodeColumnDesc;
import org.apache.hadoop.hive.ql.plan.ExprNodeConstantDesc;
import org.apache.hadoop.hive.ql.plan.ExprNodeDesc;
import org.apache.hadoop.hive.ql.plan.ExprNodeDescUtils;
import org.apache.hadoop.hive.ql.plan.ExprNodeGenericFuncDesc;
import org.apache.hadoop.hive.ql.udf.generic.GenericUDF;
import org.apache.hadoop.hive.serde2.typeinfo.PrimitiveTypeInfo;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfo;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfoFactory;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfoUtils;

/**
 * Makes random partition expressions with the Hive on the class path, and Hive's own answers to them. Prints lines
 * "key TAB name TAB type", "row TAB value ...", "expr TAB base64 TAB unknown TAB kept rows TAB text" ("failed" where Hive
 * cannot evaluate what it could build). Arguments: seed, number of expressions, number of rows, and whether the class of
 * the root is written where this Hive can.
 */
public final class ExpressionSamples {
  private static final String DEFAULT = "__HIVE_DEFAULT_PARTITION__";
  private static final String[][] KEYS = {
      {"s", "string"}, {"i", "int"}, {"b", "bigint"}, {"t", "tinyint"}, {"d", "date"}, {"ts", "timestamp"},
      {"m", "decimal(10,2)"}, {"x", "double"}, {"f", "float"}, {"o", "boolean"}, {"v", "varchar(10)"}, {"c", "char(4)"}};
  private static final Map<String, String[]> VALUES = new LinkedHashMap<>();

  static {
    VALUES.put("string", new String[] {"a", "ab", "abc", "b", "2024-01-01", "2024-02-29", "10", "9", "é", "a b", "a_b"});
    VALUES.put("int", new String[] {"0", "1", "2", "9", "10", "-5", "2147483647"});
    VALUES.put("bigint", new String[] {"0", "1", "2", "9", "10", "-5", "9007199254740993", "9223372036854775807"});
    VALUES.put("tinyint", new String[] {"0", "1", "2", "9", "10", "-5", "127"});
    VALUES.put("date", new String[] {"2024-01-01", "2024-02-29", "2023-12-31", "1970-01-01", "1969-12-31"});
    VALUES.put("timestamp", new String[] {
        "2024-01-01 00:00:00", "2024-01-01 10:30:00", "2024-02-29 00:00:00", "2024-01-01 00:00:00.5"});
    VALUES.put("decimal", new String[] {"0", "1.50", "2", "-2.25", "10", "9.99"});
    VALUES.put("double", new String[] {"0", "1.5", "2", "-2.25", "10", "0.1"});
    VALUES.put("float", new String[] {"0", "1.5", "2", "-2.25", "10", "0.1"});
    VALUES.put("boolean", new String[] {"true", "false"});
    VALUES.put("varchar", new String[] {"a", "ab", "abc", "b", "10"});
    VALUES.put("char", new String[] {"a", "ab", "abc", "b", "10"});
  }

  private final Random random;

  private ExpressionSamples(long seed) {
    random = new Random(seed);
  }

  public static void main(String[] arguments) throws Exception {
    ExpressionSamples samples = new ExpressionSamples(Long.parseLong(arguments[0]));
    HiveKryo kryo = new HiveKryo(Boolean.parseBoolean(arguments[3]));
    samples.print(Integer.parseInt(arguments[1]), Integer.parseInt(arguments[2]), kryo);
  }

  private void print(int expressions, int rows, HiveKryo kryo) throws Exception {
    List<String> names = new ArrayList<>();
    List<PrimitiveTypeInfo> types = new ArrayList<>();
    for (String[] key : KEYS) {
      names.add(key[0]);
      types.add((PrimitiveTypeInfo) TypeInfoUtils.getTypeInfoFromTypeString(key[1]));
      System.out.println("key\t" + key[0] + "\t" + key[1]);
    }
    List<String> partitions = new ArrayList<>();
    for (int row = 0; row < rows; row++) {
      List<String> values = new ArrayList<>();
      for (PrimitiveTypeInfo type : types) {
        values.add(random.nextInt(8) == 0 ? DEFAULT : pick(VALUES.get(type.getTypeName().split("\\(")[0])));
      }
      System.out.println("row\t" + String.join("\t", values));
      partitions.add(FileUtils.makePartName(names, values) + "#" + row);
    }
    for (int number = 0; number < expressions; number++) {
      ExprNodeDesc expression;
      try {
        expression = predicate(3);
      } catch (Exception refused) {
        number--;  // Hive's own type checks say no to some combinations.
        continue;
      }
      if (!(expression instanceof ExprNodeGenericFuncDesc)) {
        number--;
        continue;
      }
      String text = expression.getExprString();
      String encoded = Base64.getEncoder().encodeToString(kryo.bytesOf((ExprNodeGenericFuncDesc) expression));
      System.out.println("expr\t" + encoded + "\t" + answer(expression, names, types, partitions) + "\t" + text);
    }
  }

  /** "unknown TAB kept rows". Rows are told apart by a mark behind the name's last value, taken off before Hive sees it. */
  private static String answer(
      ExprNodeDesc expression, List<String> names, List<PrimitiveTypeInfo> types, List<String> partitions) {
    try {
      replaceDefault(expression);
      boolean unknown = false;
      StringBuilder kept = new StringBuilder();
      Method prune = Arrays.stream(PartitionPruner.class.getMethods())
          .filter(method -> method.getName().equals("prunePartitionNames")).findFirst().get();
      for (int row = 0; row < partitions.size(); row++) {
        String name = partitions.get(row);
        List<String> one = new ArrayList<>(List.of(name.substring(0, name.lastIndexOf('#'))));
        unknown |= (Boolean) prune.invoke(null, names, types, expression, DEFAULT, one);
        kept.append(one.isEmpty() ? "" : (kept.length() > 0 ? "," : "") + row);
      }
      return unknown + "\t" + kept;
    } catch (Exception error) {
      Throwable cause = error;
      while (cause.getCause() != null) {
        cause = cause.getCause();
      }
      System.err.println(expression.getExprString() + ": " + cause);
      return "failed\t";
    }
  }

  private static void replaceDefault(ExprNodeDesc expression) throws Exception {
    for (Method method : ExprNodeDescUtils.class.getMethods()) {
      if (method.getName().equals("replaceEqualDefaultPartition")) {
        method.invoke(null, expression, DEFAULT);
      }
    }
  }

  private ExprNodeDesc predicate(int depth) throws Exception {
    int choice = random.nextInt(depth > 0 ? (hasTruth() ? 13 : 12) : 8);
    String[] key = pick(KEYS);
    TypeInfo type = TypeInfoUtils.getTypeInfoFromTypeString(key[1]);
    ExprNodeDesc column = column(key);
    switch (choice) {
      case 0: case 1: case 2:
        return call(pick(new String[] {"=", "<>", "<", "<=", ">", ">="}), column, constant(type));
      case 3:
        return call(pick(new String[] {"=", "<", ">="}), constant(type), column);
      case 4: {
        List<ExprNodeDesc> values = new ArrayList<>(List.of(column));
        for (int count = 1 + random.nextInt(3); count > 0; count--) {
          values.add(constant(type));
        }
        return call("in", values.toArray(new ExprNodeDesc[0]));
      }
      case 5:
        return call("between", new ExprNodeConstantDesc(random.nextBoolean()), column, constant(type), constant(type));
      case 6:
        return call(random.nextBoolean() ? "isnull" : "isnotnull", column);
      case 7:
        return odd(column, type);
      case 8: case 9:
        return call("and", predicate(depth - 1), predicate(depth - 1));
      case 10:
        return call("or", predicate(depth - 1), predicate(depth - 1), predicate(depth - 1));
      case 11:
        return call("not", predicate(depth - 1));
      default:
        return call(pick(new String[] {"istrue", "isfalse", "isnottrue", "isnotfalse"}), predicate(depth - 1));
    }
  }

  /** Not in Hive 2, whose registry would look for it anew each time, in a metastore. */
  private static boolean hasTruth() {
    try {
      Class.forName("org.apache.hadoop.hive.ql.udf.generic.GenericUDFOPTrue");
      return true;
    } catch (ClassNotFoundException older) {
      return false;
    }
  }

  /** Casts, mixed types, columns against columns, structs, LIKE, the default partition by name, unknown functions. */
  private ExprNodeDesc odd(ExprNodeDesc column, TypeInfo type) throws Exception {
    String[] otherKey = pick(KEYS);
    TypeInfo other = TypeInfoUtils.getTypeInfoFromTypeString(otherKey[1]);
    switch (random.nextInt(8)) {
      case 0:
        return call("like", column(KEYS[0]), new ExprNodeConstantDesc(pick(new String[] {"a%", "%b", "a_b", "a\\_b", "20%-01"})));
      case 1:
        return call(pick(new String[] {"=", "<", ">"}), cast(column), constant(other));
      case 2:
        return call(pick(new String[] {"=", "<>", "<"}), column, constant(other));
      case 3:
        return call(pick(new String[] {"=", "<>", ">="}), column, column(otherKey));
      case 4: {
        ExprNodeDesc keys = call("struct", column(KEYS[0]), column(KEYS[1]));
        ExprNodeDesc first = call("struct", constant(TypeInfoFactory.stringTypeInfo), constant(TypeInfoFactory.intTypeInfo));
        ExprNodeDesc second = call("struct", constant(TypeInfoFactory.stringTypeInfo), constant(TypeInfoFactory.intTypeInfo));
        return call("in", keys, first, second);
      }
      case 5:
        return call(random.nextBoolean() ? "=" : "<>", column(KEYS[0]), new ExprNodeConstantDesc(DEFAULT));
      case 6:
        return call("=", call("year", column(KEYS[4])), new ExprNodeConstantDesc(2024));
      default:
        return call("isnull", cast(column));
    }
  }

  private ExprNodeDesc cast(ExprNodeDesc operand) throws Exception {
    return call(pick(new String[] {"int", "bigint", "double", "string", "date", "tinyint"}), operand);
  }

  private static ExprNodeDesc call(String function, ExprNodeDesc... children) throws Exception {
    GenericUDF udf = FunctionRegistry.getFunctionInfo(function).getGenericUDF();
    return ExprNodeGenericFuncDesc.newInstance(udf, new ArrayList<>(Arrays.asList(children)));
  }

  private static ExprNodeDesc column(String[] key) {
    return new ExprNodeColumnDesc(TypeInfoUtils.getTypeInfoFromTypeString(key[1]), key[0], "tab", true);
  }

  private ExprNodeDesc constant(TypeInfo type) throws Exception {
    String text = pick(VALUES.get(type.getTypeName().split("\\(")[0]));
    return new ExprNodeConstantDesc(type, typed(type, text));
  }

  private static Object typed(TypeInfo type, String text) throws Exception {
    switch (type.getTypeName().split("\\(")[0]) {
      case "int": return Integer.valueOf(text);
      case "bigint": return Long.valueOf(text);
      case "tinyint": return Byte.valueOf(text);
      case "double": return Double.valueOf(text);
      case "float": return Float.valueOf(text);
      case "boolean": return Boolean.valueOf(text);
      case "decimal": return HiveDecimal.create(text);
      case "varchar": return new HiveVarchar(text, 10);
      case "char": return new HiveChar(text, 4);
      case "date": return moment("Date", text);
      case "timestamp": return moment("Timestamp", text);
      default: return text;
    }
  }

  private static Object moment(String name, String text) throws Exception {
    try {
      return Class.forName("org.apache.hadoop.hive.common.type." + name).getMethod("valueOf", String.class)
          .invoke(null, text);
    } catch (ClassNotFoundException older) {
      return Class.forName("java.sql." + name).getMethod("valueOf", String.class).invoke(null, text);
    }
  }

  private <T> T pick(T[] from) {
    return from[random.nextInt(from.length)];
  }
}
