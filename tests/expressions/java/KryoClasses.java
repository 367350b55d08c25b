import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.util.ArrayList;
import java.util.Enumeration;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;

/**
 * Prints how the Kryo of the Hive on the class path writes the classes that partition expressions are made of, a line
 * per class: "class TAB serializer TAB id TAB field:type ...", fields in the order of writing. The id is -1 for classes
 * written by name. A field's type is a primitive, a final class (no class is written before the value), or "?".
 * Argument: the hive-exec jar, whose functions are listed.
 */
public final class KryoClasses {
  private static final String[] PREFIXES = {
      "org/apache/hadoop/hive/ql/udf/UDF", "org/apache/hadoop/hive/ql/udf/generic/GenericUDF",
      "org/apache/hadoop/hive/ql/udf/generic/GenericUDFUtils$",
      "org/apache/hadoop/hive/ql/plan/ExprNode", "org/apache/hadoop/hive/serde2/typeinfo/",
      "org/apache/hadoop/hive/serde2/objectinspector/primitive/",
      "org/apache/hadoop/hive/serde2/objectinspector/ObjectInspectorConverters$",
      "org/apache/hadoop/hive/serde2/objectinspector/Standard", "org/apache/hadoop/hive/serde2/io/"};
  private static final String[] OTHERS = {
      "java.lang.Integer", "java.lang.Long", "java.lang.Short", "java.lang.Byte", "java.lang.Boolean",
      "java.lang.Float", "java.lang.Double", "java.lang.Character", "java.lang.String", "java.sql.Date",
      "java.sql.Timestamp", "java.math.BigDecimal", "java.math.BigInteger", "java.time.LocalDate",
      "java.time.LocalDateTime", "java.util.ArrayList", "java.util.LinkedList", "java.util.HashSet",
      "java.util.LinkedHashSet", "java.util.HashMap", "java.util.LinkedHashMap", "java.util.Arrays$ArrayList",
      "java.util.Collections$EmptyList", "java.util.Collections$SingletonList", "java.util.GregorianCalendar",
      "java.util.TreeMap", "java.util.TreeSet",
      "org.apache.hadoop.hive.common.type.Date", "org.apache.hadoop.hive.common.type.Timestamp",
      "org.apache.hadoop.hive.common.type.TimestampTZ", "org.apache.hadoop.hive.common.type.HiveDecimal",
      "org.apache.hadoop.hive.common.type.HiveChar", "org.apache.hadoop.hive.common.type.HiveVarchar",
      "org.apache.hadoop.hive.common.type.HiveIntervalYearMonth",
      "org.apache.hadoop.hive.common.type.HiveIntervalDayTime", "org.apache.hadoop.io.BooleanWritable",
      "org.apache.hadoop.io.IntWritable", "org.apache.hadoop.io.LongWritable", "org.apache.hadoop.io.FloatWritable",
      "org.apache.hadoop.io.Text", "org.apache.hadoop.io.BytesWritable", "org.apache.hadoop.io.NullWritable"};

  public static void main(String[] arguments) throws Exception {
    HiveKryo kryo = new HiveKryo(true);
    Map<String, String> lines = new TreeMap<>();
    List<String> pending = listed(arguments[0]);
    TreeSet<String> seen = new TreeSet<>(pending);
    while (!pending.isEmpty()) {
      String name = pending.remove(pending.size() - 1);
      try {
        Class<?> type = Class.forName(name, false, KryoClasses.class.getClassLoader());
        if (type.isInterface() || Modifier.isAbstract(type.getModifiers()) && !type.isEnum()) {
          continue;
        }
        Object serializer = kryo.serializerOf(type);
        String kind = serializer.getClass().getSimpleName();
        boolean fields = kind.equals("FieldSerializer");
        if (fields && !name.startsWith("org.apache.hadoop.")
            && !name.startsWith("java.time.") && !name.startsWith("java.util.Collections$")) {
          continue;  // Their fields change with the JDK.
        }
        int id = kryo.idOf(type);
        StringBuilder line = new StringBuilder(name).append('\t').append(kind).append('\t').append(id);
        if (fields) {
          for (Object cached : (Object[]) HiveKryo.method(serializer.getClass(), "getFields").invoke(serializer)) {
            Field field = (Field) HiveKryo.method(cached.getClass(), "getField").invoke(cached);
            line.append('\t').append(field.getName()).append(':').append(typeOf(kryo, field, pending, seen));
          }
        }
        lines.put(name, line.toString());
      } catch (Throwable error) {
        System.err.println("skipped " + name + ": " + error);
      }
    }
    lines.values().forEach(System.out::println);
  }

  private static String typeOf(HiveKryo kryo, Field field, List<String> pending, TreeSet<String> seen)
      throws Exception {
    Class<?> declared = field.getType();
    if (!declared.isPrimitive() && !declared.isArray() && seen.add(declared.getName())) {
      pending.add(declared.getName());
    }
    if (declared.isPrimitive() || kryo.isFinal(declared)) {
      return declared.getName();
    }
    String generic = "";
    if (field.getGenericType() instanceof ParameterizedType) {
      for (Type argument : ((ParameterizedType) field.getGenericType()).getActualTypeArguments()) {
        boolean known = argument instanceof Class && kryo.isFinal((Class<?>) argument);
        generic += (generic.isEmpty() ? "" : ",") + (known ? ((Class<?>) argument).getName() : "?");
      }
    }
    return generic.matches("[?,]*") ? "?" : "?<" + generic + ">";
  }

  private static List<String> listed(String jar) throws Exception {
    List<String> names = new ArrayList<>(List.of(OTHERS));
    try (JarFile file = new JarFile(jar)) {
      for (Enumeration<JarEntry> entries = file.entries(); entries.hasMoreElements();) {
        String path = entries.nextElement().getName();
        for (String prefix : PREFIXES) {
          if (path.startsWith(prefix) && path.endsWith(".class") && !path.matches(".*(\\$\\d+|Utils|Factory)\\.class")) {
            names.add(path.substring(0, path.length() - 6).replace('/', '.'));
            break;
          }
        }
      }
    }
    return names;
  }
}
