import java.lang.reflect.Field;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.runner.JUnitCore;

/**
 * Runs a class of Hive's tests. Where the class has a directory of its own, with a warehouse in it that it looks into, the
 * link that the second argument names leads there: it is where the metastore has its warehouse.
 */
public final class EngineTestRunner {
  public static void main(String[] arguments) throws Exception {
    for (Class<?> type = Class.forName(arguments[0]); type != null; type = type.getSuperclass()) {
      for (Field field : type.getDeclaredFields()) {
        if (field.getName().equals("TEST_DATA_DIR")) {
          field.setAccessible(true);
          Files.createSymbolicLink(Path.of(arguments[1]), Path.of(field.get(null).toString()));
        }
      }
    }
    JUnitCore.main(arguments[0]);
  }
}
