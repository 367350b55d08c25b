import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hive.service.server.HiveServer2;

/**
 * HiveServer2 in this process, and JDBC connections to its port. Arguments: the port, a file of lines, the file to
 * write. A line is the number of a session, a word, and what it is about, separated by blanks: "sql" a statement, "keep
 * NAME" a statement whose answer's first value stands for ${NAME} from then on, or the name of a method of
 * DatabaseMetaData with its arguments, separated by |, "null" for none.
 */
public class JdbcStatements {
  private static final Map<String, String> KEPT = new HashMap<>();
  private static final Comparator<String> WHOLE = Comparator.naturalOrder();
  /** Stable: the columns of a table stay in their order, tables have none. */
  private static final Comparator<String> BY_TABLE = Comparator.comparing(line -> line.split("\\|", 5)[2] + "|" + line.split("\\|", 5)[3]);
  private static PrintStream out;

  public static void main(String[] arguments) throws Exception {
    out = new PrintStream(Files.newOutputStream(Path.of(arguments[2])), true, StandardCharsets.UTF_8);
    HiveServer2 server = new HiveServer2();
    server.init(new HiveConf());
    server.start();
    Class.forName("org.apache.hive.jdbc.HiveDriver");
    String url = "jdbc:hive2://127.0.0.1:" + arguments[0] + "/default";
    Map<String, Connection> sessions = new TreeMap<>();
    for (String line : Files.readAllLines(Path.of(arguments[1]))) {
      if (line.isBlank() || line.startsWith("#")) {
        continue;
      }
      String[] parts = line.split(" ", 3);
      out.println("> " + line);
      if (!sessions.containsKey(parts[0])) {
        sessions.put(parts[0], connect(url, parts[0]));
      }
      try {
        carryOut(sessions.get(parts[0]), parts[1], parts.length > 2 ? parts[2] : "");
      } catch (SQLException failed) {
        out.println("FAILED: " + failed.getErrorCode() + " " + failed.getSQLState() + " "
            + String.valueOf(failed.getMessage()).split("\n")[0]);
      }
    }
    out.println("> end");
    out.close();
    Runtime.getRuntime().halt(0); // its hooks may wait for good
  }

  private static Connection connect(String url, String user) throws Exception {
    SQLException last = null;
    for (int attempt = 0; attempt < 120; attempt++) {
      try {
        return DriverManager.getConnection(url, "user" + user, "");
      } catch (SQLException notYet) {
        last = notYet;
        Thread.sleep(500);
      }
    }
    throw last;
  }

  private static void carryOut(Connection session, String word, String rest) throws SQLException {
    if (word.equals("sql") || word.equals("keep")) {
      String name = word.equals("keep") ? rest.substring(0, rest.indexOf(' ')) : null;
      String text = name == null ? rest : rest.substring(rest.indexOf(' ') + 1);
      for (Map.Entry<String, String> one : KEPT.entrySet()) {
        text = text.replace("${" + one.getKey() + "}", one.getValue());
      }
      try (Statement statement = session.createStatement()) {
        if (!statement.execute(text)) {
          return;
        }
        try (ResultSet rows = statement.getResultSet()) {
          if (name == null) {
            show(rows, null);
          } else if (rows.next()) {
            KEPT.put(name, rows.getString(1));
          }
        }
      }
      return;
    }
    String[] a = rest.split("\\|", -1);
    for (int i = 0; i < a.length; i++) {
      a[i] = a[i].equals("null") ? null : a[i];
    }
    DatabaseMetaData about = session.getMetaData();
    switch (word) {
      case "getTables" -> show(about.getTables(a[0], a[1], a[2], a[3] == null ? null : a[3].split(",")), WHOLE);
      case "getColumns" -> show(about.getColumns(a[0], a[1], a[2], a[3]), BY_TABLE);
      case "getPrimaryKeys" -> show(about.getPrimaryKeys(a[0], a[1], a[2]), WHOLE);
      case "getImportedKeys" -> show(about.getImportedKeys(a[0], a[1], a[2]), WHOLE);
      case "getExportedKeys" -> show(about.getExportedKeys(a[0], a[1], a[2]), WHOLE);
      case "getCrossReference" -> show(about.getCrossReference(a[0], a[1], a[2], a[3], a[4], a[5]), WHOLE);
      case "getFunctions" -> show(about.getFunctions(a[0], a[1], a[2]), WHOLE);
      case "getSchemas" -> show(a.length < 2 ? about.getSchemas() : about.getSchemas(a[0], a[1]), null);
      case "getCatalogs" -> show(about.getCatalogs(), null);
      case "getTableTypes" -> show(about.getTableTypes(), null);
      case "getTypeInfo" -> show(about.getTypeInfo(), null);
      case "getProcedures" -> show(about.getProcedures(a[0], a[1], a[2]), WHOLE);
      default -> throw new IllegalArgumentException(word);
    }
  }

  private static void show(ResultSet rows, Comparator<String> order) throws SQLException {
    int count = rows.getMetaData().getColumnCount();
    StringBuilder head = new StringBuilder("|");
    for (int i = 1; i <= count; i++) {
      head.append(rows.getMetaData().getColumnLabel(i)).append('|');
    }
    out.println(head);
    List<String> lines = new ArrayList<>();
    while (rows.next()) {
      StringBuilder line = new StringBuilder("|");
      for (int i = 1; i <= count; i++) {
        line.append(rows.getString(i)).append('|');
      }
      lines.add(line.toString());
    }
    if (order != null) {
      lines.sort(order);
    }
    lines.forEach(out::println);
  }
}
