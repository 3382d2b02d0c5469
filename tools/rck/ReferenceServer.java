import java.net.InetSocketAddress;
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.rest.RESTCatalogAdapter;
import org.apache.iceberg.rest.RESTCatalogServlet;
import org.eclipse.jetty.compression.gzip.GzipCompression;
import org.eclipse.jetty.compression.server.CompressionHandler;
import org.eclipse.jetty.ee10.servlet.ServletContextHandler;
import org.eclipse.jetty.ee10.servlet.ServletHolder;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;

/**
 * Iceberg's reference REST server, put together as its own RESTCatalogServer is, but on loopback and on a free port,
 * which is printed. Arguments are catalog properties, key=value. Ends when its standard input does.
 */
public class ReferenceServer {
  public static void main(String[] arguments) throws Exception {
    Map<String, String> properties = new HashMap<>();
    properties.put("catalog-impl", "org.apache.iceberg.jdbc.JdbcCatalog");
    properties.put("jdbc.schema-version", "V1");
    for (String argument : arguments) {
      String[] pair = argument.split("=", 2);
      properties.put(pair[0], pair[1]);
    }
    var catalog = CatalogUtil.buildIcebergCatalog("rest_backend", properties, new Configuration());
    var context = new ServletContextHandler(ServletContextHandler.NO_SESSIONS);
    context.addServlet(new ServletHolder(new RESTCatalogServlet(new RESTCatalogAdapter(catalog))), "/*");
    var compression = new CompressionHandler();
    compression.putCompression(new GzipCompression());
    context.insertHandler(compression);
    var server = new Server(new InetSocketAddress("127.0.0.1", 0));
    server.setHandler(context);
    server.start();
    System.out.println(((ServerConnector) server.getConnectors()[0]).getLocalPort());
    System.out.flush();
    System.in.transferTo(java.io.OutputStream.nullOutputStream());
    System.exit(0);
  }
}
