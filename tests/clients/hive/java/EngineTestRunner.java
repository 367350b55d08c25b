import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.runner.JUnitCore;
import sun.misc.Unsafe;

/**
 * Runs a class of Hive's tests. Where the class has a directory of its own, with a warehouse in it that it looks into, the
 * directory is the one that the second argument names: there the metastore has its warehouse.
 *
 * <p>A link would not do: Hive moves files from one name of a directory to the other, and so into themselves.
 */
public final class EngineTestRunner {
  private static final String DIRECTORY = "TEST_DATA_DIR";

  public static void main(String[] arguments) throws Exception {
    for (Class<?> type = Class.forName(arguments[0]); type != null; type = type.getSuperclass()) {
      for (Field field : type.getDeclaredFields()) {
        if (field.getName().equals(DIRECTORY)) {
          field.setAccessible(true);
          move(type, field.get(null).toString(), arguments[1]);
        }
      }
    }
    JUnitCore.main(arguments[0]);
  }

  /** The names of files that the class made up from that of its directory when it was loaded begin with the new one. */
  private static void move(Class<?> type, String old, String directory) throws Exception {
    Files.createDirectories(Path.of(directory));
    Field access = Unsafe.class.getDeclaredField("theUnsafe");
    access.setAccessible(true);
    Unsafe unsafe = (Unsafe) access.get(null);
    for (Field field : type.getDeclaredFields()) {
      if (Modifier.isStatic(field.getModifiers()) && field.getType() == String.class) {
        field.setAccessible(true);
        String value = (String) field.get(null);
        if (value != null && value.startsWith(old)) {
          unsafe.putObject(
              unsafe.staticFieldBase(field), unsafe.staticFieldOffset(field), directory + value.substring(old.length()));
        }
      }
    }
  }
}
