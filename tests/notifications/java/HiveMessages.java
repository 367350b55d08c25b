import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.thrift.TBase;
import org.apache.thrift.TDeserializer;
import org.apache.thrift.TSerializer;

/**
 * Lets one Hive release read and write messages of the notification log. One request a line, one answer a line.
 *
 * <p>{@code read<TAB>method<TAB>format<TAB>message}: the deserializer's method, such as getDropTableMessage. The answer
 * lists what the message's own getters say, {@code name=value} separated by tabs.
 *
 * <p>{@code write<TAB>method<TAB>format<TAB>argument...}: the builder's method, such as buildDropTableMessage. The answer
 * is the message. An argument is {@code kind:value}; see {@link #argument}.
 *
 * <p>Thrift objects and text travel in base64. Reflection all along, so that one program serves every release.
 */
public final class HiveMessages {
  private static final String MESSAGING = "org.apache.hadoop.hive.metastore.messaging.";
  private static final String API = "org.apache.hadoop.hive.metastore.api.";

  public static void main(String[] arguments) throws Exception {
    PrintStream out = new PrintStream(System.out, true, "UTF-8");
    System.setOut(System.err); // Hive's classes may print
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String[] fields = line.split("\t", -1);
      String answer;
      try {
        answer = fields[0].equals("read") ? read(fields) : write(fields);
      } catch (Throwable failed) {
        Throwable cause = failed instanceof InvocationTargetException ? failed.getCause() : failed;
        answer = "failed=" + text(cause + (cause.getCause() == null ? "" : ", because of " + cause.getCause()));
      }
      out.println(answer);
    }
  }

  // ---- reading ----

  private static String read(String[] fields) throws Exception {
    Object deserializer = deserializer(fields[2]);
    String message = decode(fields[3]);
    Object read;
    if (fields[1].startsWith("JSON")) { // no method for it: the class alone, as readers of other projects do
      Class<?> mapper = Class.forName("com.fasterxml.jackson.databind.ObjectMapper");
      Object instance = mapper.getConstructor().newInstance();
      read = mapper.getMethod("readValue", String.class, Class.class)
          .invoke(instance, message, Class.forName(MESSAGING + "json." + fields[1]));
    } else {
      Method method = deserializer.getClass().getMethod(fields[1], String.class);
      method.setAccessible(true);
      read = method.invoke(deserializer, message);
    }
    List<String> facts = new ArrayList<>();
    for (Map.Entry<String, Method> getter : getters(read).entrySet()) {
      try {
        facts.add(getter.getKey() + "=" + describe(getter.getValue().invoke(read)));
      } catch (InvocationTargetException failed) {
        facts.add(getter.getKey() + "=failed:" + text(String.valueOf(failed.getCause())));
      }
    }
    return String.join("\t", facts);
  }

  private static Object deserializer(String format) throws Exception {
    Class<?> factory = Class.forName(MESSAGING + "MessageFactory");
    try {
      Object encoder = factory.getMethod("getInstance", String.class).invoke(null, format);
      return encoder.getClass().getMethod("getDeserializer").invoke(encoder);
    } catch (NoSuchMethodException older) {
      Object instance = factory.getMethod("getInstance").invoke(null);
      return factory.getMethod("getDeserializer").invoke(instance);
    }
  }

  private static Map<String, Method> getters(Object message) {
    Map<String, Method> found = new TreeMap<>();
    for (Method method : message.getClass().getMethods()) {
      String name = method.getName();
      boolean isGetter = name.startsWith("get") || name.startsWith("is");
      if (isGetter && method.getParameterCount() == 0 && !Modifier.isStatic(method.getModifiers())
          && !name.equals("getClass") && !method.isBridge()) {
        method.setAccessible(true);
        found.put(name, method);
      }
    }
    return found;
  }

  /** One value: {@code -} for null, {@code text:}, {@code thrift:Class:}, {@code [a,b]}, {@code {k>v,...}}, a number. */
  private static String describe(Object value) throws Exception {
    if (value == null) {
      return "-";
    }
    if (value instanceof TBase) {
      return "thrift:" + value.getClass().getSimpleName() + ":"
          + Base64.getEncoder().encodeToString(new TSerializer().serialize((TBase<?, ?>) value));
    }
    if (value instanceof Map) {
      List<String> entries = new ArrayList<>();
      for (Map.Entry<?, ?> entry : ((Map<?, ?>) value).entrySet()) {
        entries.add(describe(entry.getKey()) + ">" + describe(entry.getValue()));
      }
      return "{" + String.join(",", entries) + "}";
    }
    if (value instanceof Iterable) {
      List<String> items = new ArrayList<>();
      for (Object item : (Iterable<?>) value) {
        items.add(describe(item));
      }
      return "[" + String.join(",", items) + "]";
    }
    if (value instanceof Number || value instanceof Boolean) {
      return String.valueOf(value);
    }
    if (value.getClass().getSimpleName().equals("PartitionFiles")) {
      return "[" + describe(value.getClass().getMethod("getPartitionName").invoke(value)) + ","
          + describe(value.getClass().getMethod("getFiles").invoke(value)) + "]";
    }
    return "text:" + text(String.valueOf(value));
  }

  // ---- writing ----

  private static String write(String[] fields) throws Exception {
    List<Object> values = new ArrayList<>();
    for (int index = 3; index < fields.length; index++) {
      values.add(argument(fields[index]));
    }
    Object builder;
    try {
      builder = Class.forName(MESSAGING + "MessageBuilder").getMethod("getInstance").invoke(null);
    } catch (ClassNotFoundException older) {
      builder = Class.forName(MESSAGING + "MessageFactory").getMethod("getInstance").invoke(null);
    }
    for (Method method : builder.getClass().getMethods()) {
      if (method.getName().equals(fields[1]) && method.getParameterCount() <= values.size()) {
        method.setAccessible(true); // older releases take fewer arguments: the last ones are left out
        Object message = method.invoke(builder, values.subList(0, method.getParameterCount()).toArray());
        return text(serialize(message, fields[2]));
      }
    }
    throw new NoSuchMethodException(fields[1]);
  }

  private static String serialize(Object message, String format) throws Exception {
    Class<?> factory = Class.forName(MESSAGING + "MessageFactory");
    try {
      Object encoder = factory.getMethod("getInstance", String.class).invoke(null, format);
      Object serializer = encoder.getClass().getMethod("getSerializer").invoke(encoder);
      Method serialize = serializer.getClass().getMethod("serialize", Class.forName(MESSAGING + "EventMessage"));
      serialize.setAccessible(true);
      return (String) serialize.invoke(serializer, message);
    } catch (NoSuchMethodException older) {
      return message.toString();
    }
  }

  /**
   * An argument: {@code null:}, {@code text:}, {@code long:}, {@code int:}, {@code flag:}, {@code thrift:Class:},
   * {@code list:} and {@code iterator:} of arguments joined by commas, {@code map:} of keys and values joined by commas,
   * {@code files:} a partition name and files, {@code compaction:} a CommitCompactionEvent.
   */
  private static Object argument(String argument) throws Exception {
    int colon = argument.indexOf(':');
    String value = argument.substring(colon + 1);
    switch (argument.substring(0, colon)) {
      case "null":
        return null;
      case "text":
        return decode(value);
      case "long":
        return Long.valueOf(value);
      case "flag":
        return Boolean.valueOf(value);
      case "thrift":
        return thrift(value);
      case "list":
        return items(value);
      case "iterator":
        return items(value).iterator();
      case "map":
        Map<Object, Object> map = new TreeMap<>();
        List<Object> pairs = items(value);
        for (int index = 0; index < pairs.size(); index += 2) {
          map.put(pairs.get(index), pairs.get(index + 1));
        }
        return map;
      case "files":
        List<Object> parts = items(value);
        return Class.forName(MESSAGING + "PartitionFiles")
            .getConstructor(String.class, java.util.Iterator.class)
            .newInstance(parts.get(0), parts.subList(1, parts.size()).iterator());
      case "compaction":
        return compaction(items(value));
      default:
        throw new IllegalArgumentException(argument);
    }
  }

  private static List<Object> items(String value) throws Exception {
    List<Object> items = new ArrayList<>();
    for (String item : value.isEmpty() ? new String[0] : value.split(",")) {
      items.add(argument(new String(Base64.getDecoder().decode(item), StandardCharsets.UTF_8)));
    }
    return items;
  }

  private static Object thrift(String value) throws Exception {
    String[] parts = value.split(":");
    TBase<?, ?> struct = (TBase<?, ?>) Class.forName(API + parts[0]).getConstructor().newInstance();
    new TDeserializer().deserialize(struct, Base64.getDecoder().decode(parts[1]));
    return struct;
  }

  private static Object compaction(List<Object> parts) throws Exception {
    Class<?> event = Class.forName("org.apache.hadoop.hive.metastore.events.CommitCompactionEvent");
    for (java.lang.reflect.Constructor<?> constructor : event.getConstructors()) {
      if (constructor.getParameterCount() == 7) {
        @SuppressWarnings({"unchecked", "rawtypes"})
        Object type = Enum.valueOf((Class) Class.forName(API + "CompactionType"), (String) parts.get(2));
        return constructor.newInstance(
            parts.get(0), parts.get(1), type, parts.get(3), parts.get(4), parts.get(5), null);
      }
    }
    throw new NoSuchMethodException("CommitCompactionEvent");
  }

  private static String text(String value) {
    return Base64.getEncoder().encodeToString(value.getBytes(StandardCharsets.UTF_8));
  }

  private static String decode(String value) {
    return new String(Base64.getDecoder().decode(value), StandardCharsets.UTF_8);
  }
}
