import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Enumeration;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;

/**
 * Prints, as one JSON document, what the Thrift classes of one Hive release say about the metastore protocol.
 *
 * <p>Arguments: the jar that holds the package {@code org.apache.hadoop.hive.metastore.api}. The jar itself and the
 * libthrift it was built with must be on the class path. Only reflection is used, so that one program reads every
 * release.
 *
 * <p>Output: {@code structs} (name to kind and fields; argument and result classes are included under
 * {@code method_args} and {@code method_result}), {@code enums} (name to value names) and {@code constants}.
 */
public final class ThriftFacts {
  private static final String PACKAGE = "org.apache.hadoop.hive.metastore.api";
  private static final String SERVICE = "ThriftHiveMetastore";

  public static void main(String[] arguments) throws Exception {
    Map<String, String> structs = new TreeMap<>();
    Map<String, String> enums = new TreeMap<>();
    Map<String, String> constants = new TreeMap<>();
    for (String className : classNames(arguments[0])) {
      Class<?> candidate;
      try {
        candidate = Class.forName(className, true, ThriftFacts.class.getClassLoader());
      } catch (LinkageError unresolvable) {
        continue; // server classes that live in the same package and need other jars
      }
      if (candidate.isEnum()) {
        enums.put(candidate.getSimpleName(), describeEnum(candidate));
      } else if (candidate.getSimpleName().equals("hive_metastoreConstants")) {
        describeConstants(candidate, constants);
      } else if (hasMetaData(candidate)) {
        structs.put(protocolName(candidate), describeStruct(candidate));
      }
    }
    System.out.println(
        "{\"structs\": " + object(structs) + ",\n\"enums\": " + object(enums) + ",\n\"constants\": "
            + object(constants) + "}");
  }

  private static List<String> classNames(String jarPath) throws Exception {
    List<String> names = new ArrayList<>();
    String prefix = PACKAGE.replace('.', '/') + "/";
    try (JarFile jar = new JarFile(jarPath)) {
      for (Enumeration<JarEntry> entries = jar.entries(); entries.hasMoreElements(); ) {
        String name = entries.nextElement().getName();
        if (!name.startsWith(prefix) || !name.endsWith(".class") || name.indexOf('/', prefix.length()) >= 0) {
          continue;
        }
        String simple = name.substring(prefix.length(), name.length() - ".class".length());
        boolean nested = simple.indexOf('$') >= 0;
        boolean call = simple.startsWith(SERVICE + "$") && (simple.endsWith("_args") || simple.endsWith("_result"));
        if (!nested || call) {
          names.add(PACKAGE + "." + simple);
        }
      }
    }
    Collections.sort(names);
    return names;
  }

  private static boolean hasMetaData(Class<?> candidate) {
    try {
      candidate.getField("metaDataMap");
      return true;
    } catch (NoSuchFieldException absent) {
      return false;
    }
  }

  private static String protocolName(Class<?> struct) {
    return struct.getSimpleName();
  }

  private static String describeEnum(Class<?> type) throws Exception {
    Map<String, String> values = new TreeMap<>();
    Method getValue = type.getMethod("getValue");
    for (Object constant : type.getEnumConstants()) {
      values.put(((Enum<?>) constant).name(), String.valueOf(getValue.invoke(constant)));
    }
    return object(values);
  }

  private static void describeConstants(Class<?> type, Map<String, String> constants) throws Exception {
    for (Field field : type.getFields()) {
      if (Modifier.isStatic(field.getModifiers())) {
        constants.put(field.getName(), literal(field.get(null)));
      }
    }
  }

  private static String describeStruct(Class<?> type) throws Exception {
    Map<?, ?> metaData = (Map<?, ?>) type.getField("metaDataMap").get(null);
    String kind = "struct";
    for (Class<?> ancestor = type; ancestor != null; ancestor = ancestor.getSuperclass()) {
      if (ancestor.getName().equals("org.apache.thrift.TUnion")) {
        kind = "union";
      }
    }
    if (Throwable.class.isAssignableFrom(type)) {
      kind = "exception";
    }
    Object blank = kind.equals("union") ? null : type.getDeclaredConstructor().newInstance();
    TreeMap<Integer, String> fields = new TreeMap<>();
    for (Map.Entry<?, ?> entry : metaData.entrySet()) {
      Object key = entry.getKey();
      Method getId = key.getClass().getMethod("getThriftFieldId");
      getId.setAccessible(true);
      int id = ((Number) getId.invoke(key)).intValue();
      fields.put(id, describeField(entry.getValue(), type, blank, key));
    }
    StringBuilder text = new StringBuilder("{\"kind\": \"" + kind + "\", \"fields\": [");
    String separator = "";
    for (Map.Entry<Integer, String> field : fields.entrySet()) {
      text.append(separator).append("{\"id\": ").append(field.getKey()).append(", ").append(field.getValue());
      text.append('}');
      separator = ", ";
    }
    return text.append("]}").toString();
  }

  private static String describeField(Object metaData, Class<?> owner, Object blank, Object key) throws Exception {
    String name = (String) metaData.getClass().getField("fieldName").get(metaData);
    int requirement = ((Number) metaData.getClass().getField("requirementType").get(metaData)).intValue();
    String[] requirements = {"", "required", "optional", "default"};
    Object value = metaData.getClass().getField("valueMetaData").get(metaData);
    Object preset = null;
    if (blank != null) {
      for (Method method : blank.getClass().getMethods()) {
        if (method.getName().equals("getFieldValue")
            && method.getParameterTypes()[0].isInstance(key)
            && !method.isBridge()) {
          preset = method.invoke(blank, key);
        }
      }
    }
    return "\"name\": " + quote(name) + ", \"requirement\": " + quote(requirements[requirement]) + ", \"type\": "
        + namedType(value, owner, name) + ", \"preset\": " + literal(preset);
  }

  /** Releases built with libthrift 0.9 do not name the struct in the meta data of a result's exceptions. */
  private static String namedType(Object value, Class<?> owner, String fieldName) throws Exception {
    String type = typeName(value);
    if (type.equals("\"struct:null\"")) {
      return quote("struct:" + owner.getDeclaredField(fieldName).getType().getSimpleName());
    }
    return type;
  }

  /** A JSON string for a plain type, or a JSON array for a container: ["list", "string"]. */
  private static String typeName(Object value) throws Exception {
    int type = ((Number) value.getClass().getField("type").get(value)).intValue();
    switch (value.getClass().getSimpleName()) {
      case "ListMetaData":
        return "[\"list\", " + typeName(value.getClass().getField("elemMetaData").get(value)) + "]";
      case "SetMetaData":
        return "[\"set\", " + typeName(value.getClass().getField("elemMetaData").get(value)) + "]";
      case "MapMetaData":
        return "[\"map\", " + typeName(value.getClass().getField("keyMetaData").get(value)) + ", "
            + typeName(value.getClass().getField("valueMetaData").get(value)) + "]";
      case "StructMetaData":
        return quote("struct:" + ((Class<?>) value.getClass().getField("structClass").get(value)).getSimpleName());
      case "EnumMetaData":
        return quote("enum:" + ((Class<?>) value.getClass().getField("enumClass").get(value)).getSimpleName());
      default:
        break;
    }
    String typedef = (String) value.getClass().getMethod("getTypedefName").invoke(value);
    switch (type) {
      case 2:
        return "\"bool\"";
      case 3:
        return "\"i8\"";
      case 4:
        return "\"double\"";
      case 6:
        return "\"i16\"";
      case 8:
        return "\"i32\"";
      case 10:
        return "\"i64\"";
      case 11:
        return (Boolean) value.getClass().getMethod("isBinary").invoke(value) ? "\"binary\"" : "\"string\"";
      case 12:
        return quote("struct:" + typedef); // a struct that is declared after its use
      case 16:
        return quote("enum:" + typedef);
      default:
        return quote("unknown:" + type + ":" + typedef);
    }
  }

  private static String object(Map<String, String> members) {
    StringBuilder text = new StringBuilder("{");
    String separator = "";
    for (Map.Entry<String, String> member : members.entrySet()) {
      text.append(separator).append(quote(member.getKey())).append(": ").append(member.getValue());
      separator = ",\n";
    }
    return text.append("}").toString();
  }

  private static String literal(Object value) {
    if (value == null) {
      return "null";
    }
    if (value instanceof Number || value instanceof Boolean) {
      return value.toString();
    }
    return quote(value.toString());
  }

  private static String quote(String text) {
    StringBuilder quoted = new StringBuilder("\"");
    for (char character : text.toCharArray()) {
      if (character == '"' || character == '\\') {
        quoted.append('\\').append(character);
      } else if (character < ' ' || character > '~') {
        quoted.append(String.format("\\u%04x", (int) character));
      } else {
        quoted.append(character);
      }
    }
    return quoted.append('"').toString();
  }

  private ThriftFacts() {}
}
