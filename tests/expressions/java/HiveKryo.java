import java.io.ByteArrayOutputStream;
import java.io.OutputStream;
import java.io.Serializable;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;

/**
 * The Kryo of the Hive on the class path, whatever its version and package, reached by reflection.
 * Hive 3.1 cannot make its own under a JDK newer than 8 (a serializer for sub-lists looks for a private field), so for it
 * the same registrations are made here in the same order.
 */
final class HiveKryo {
  private static final String UTILITIES = "org.apache.hadoop.hive.ql.exec.SerializationUtilities";
  private static final String[] BY_DEFAULT = {
      "common.CopyOnFirstWriteProperties", "ql.plan.AbstractOperatorDesc", "ql.plan.MapWork", "ql.plan.ReduceWork",
      "ql.plan.TableDesc", "ql.exec.UnionOperator", "ql.exec.FileSinkOperator",
      "ql.exec.vector.VectorFileSinkOperator", "ql.io.HiveIgnoreKeyTextOutputFormat",
      "serde2.objectinspector.StandardConstantListObjectInspector",
      "serde2.objectinspector.StandardConstantMapObjectInspector",
      "serde2.objectinspector.StandardConstantStructObjectInspector"};
  private final Object kryo;
  private final boolean writesRootClass;

  /** withRootClass: whether a Hive that can write the class of the root does so, as its clients do. */
  HiveKryo(boolean withRootClass) throws Exception {
    Object made;
    try {
      made = method(Class.forName(UTILITIES), "borrowKryo").invoke(null);
    } catch (Throwable error) {
      made = registered();
    }
    kryo = made;
    writesRootClass = withRootClass && Arrays.stream(Class.forName(UTILITIES).getMethods())
        .anyMatch(candidate -> candidate.getName().equals("serializeObjectWithTypeInformation"));
  }

  private static Object registered() throws Exception {
    Class<?> type = Class.forName("org.apache.hive.com.esotericsoftware.kryo.Kryo");
    Object kryo = type.getConstructor().newInstance();
    register(kryo, java.sql.Date.class, "SqlDateSerializer");
    register(kryo, java.sql.Timestamp.class, "TimestampSerializer");
    register(kryo, Class.forName("org.apache.hadoop.hive.common.type.TimestampTZ"), "TimestampTZSerializer");
    register(kryo, Class.forName("org.apache.hadoop.fs.Path"), "PathSerializer");
    register(kryo, Arrays.asList("").getClass(), "ArraysAsListSerializer");
    method(type, "register", Class.class).invoke(kryo, new ArrayList<>().subList(0, 0).getClass());
    for (String name : BY_DEFAULT) {
      method(type, "register", Class.class).invoke(kryo, Class.forName("org.apache.hadoop.hive." + name));
    }
    return kryo;
  }

  private static void register(Object kryo, Class<?> type, String serializer) throws Exception {
    Constructor<?> constructor = Class.forName(UTILITIES + "$" + serializer).getDeclaredConstructor();
    constructor.setAccessible(true);
    Class<?> base = Class.forName("org.apache.hive.com.esotericsoftware.kryo.Serializer");
    method(kryo.getClass(), "register", Class.class, base).invoke(kryo, type, constructor.newInstance());
  }

  /** The bytes that this Hive's client sends for an expression. */
  byte[] bytesOf(Serializable expression) throws Exception {
    String packageName = method(kryo.getClass(), "getRegistration", Class.class).getReturnType().getPackageName();
    Class<?> outputType = Class.forName(packageName + ".io.Output");
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    Object output = outputType.getConstructor(OutputStream.class).newInstance(bytes);
    method(kryo.getClass(), writesRootClass ? "writeClassAndObject" : "writeObject", outputType, Object.class)
        .invoke(kryo, output, expression);
    method(outputType, "close").invoke(output);
    return bytes.toByteArray();
  }

  Object serializerOf(Class<?> type) throws Exception {
    Object registration = method(kryo.getClass(), "getRegistration", Class.class).invoke(kryo, type);
    return method(registration.getClass(), "getSerializer").invoke(registration);
  }

  int idOf(Class<?> type) throws Exception {
    Object registration = method(kryo.getClass(), "getRegistration", Class.class).invoke(kryo, type);
    return (Integer) method(registration.getClass(), "getId").invoke(registration);
  }

  boolean isFinal(Class<?> type) throws Exception {
    return (Boolean) method(kryo.getClass(), "isFinal", Class.class).invoke(kryo, type);
  }

  static Method method(Class<?> type, String name, Class<?>... parameters) throws Exception {
    for (Class<?> at = type; at != null; at = at.getSuperclass()) {
      try {
        Method found = at.getDeclaredMethod(name, parameters);
        found.setAccessible(true);
        return found;
      } catch (NoSuchMethodException next) {
        continue;
      }
    }
    throw new NoSuchMethodException(type + "." + name);
  }
}
