import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.junit.platform.engine.FilterResult;
import org.junit.platform.engine.TestSource;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.PostDiscoveryFilter;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.junit.platform.launcher.listeners.SummaryGeneratingListener;
import org.junit.platform.launcher.listeners.TestExecutionSummary;
import sun.misc.Unsafe;

/**
 * Runs a class of Hive's tests: those of JUnit 4 and those of JUnit 5 in it. Prints the failures as JUnit 4 does. Where the
 * class has a directory of its own, with a warehouse in it that it looks into, the directory is the one that the second
 * argument names: there the metastore has its warehouse. Further arguments are tests to leave out.
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
    Set<String> omitted = Set.copyOf(List.of(arguments).subList(2, arguments.length));
    PostDiscoveryFilter kept = test -> FilterResult.includedIf(method(test.getSource()).filter(omitted::contains).isEmpty());
    SummaryGeneratingListener listener = new SummaryGeneratingListener();
    LauncherFactory.create()
        .execute(
            LauncherDiscoveryRequestBuilder.request().selectors(selectClass(arguments[0])).filters(kept).build(),
            listener);
    print(listener.getSummary());
    // Some of Hive's threads never end.
    System.exit(listener.getSummary().getTotalFailureCount() == 0 ? 0 : 1);
  }

  private static void print(TestExecutionSummary summary) {
    List<TestExecutionSummary.Failure> failures = summary.getFailures();
    System.out.println(); // behind what the tests printed
    for (int index = 0; index < failures.size(); index++) {
      TestIdentifier test = failures.get(index).getTestIdentifier();
      System.out.printf(
          "%d) %s(%s)%n", index + 1, method(test.getSource()).orElse("initializationError"), test.getUniqueId());
      failures.get(index).getException().printStackTrace(System.out);
      System.out.println();
    }
    System.out.printf("Tests run: %d,  Failures: %d%n", summary.getTestsStartedCount(), failures.size());
  }

  private static Optional<String> method(Optional<TestSource> source) {
    return source.filter(MethodSource.class::isInstance).map(found -> ((MethodSource) found).getMethodName());
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
