package foreign;

import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import org.apache.catalina.Context;
import org.apache.catalina.startup.Tomcat;

/** Embedded Tomcat: a connection ends after 100 requests (maxKeepAliveRequests), or when it is idle for 60 s. */
public class TomcatHttp {
    public static void main(String[] arguments) throws Exception {
        Tomcat tomcat = Embedded.tomcat();
        Context context = tomcat.addContext("", null);
        Tomcat.addServlet(context, "hello", new Hello());
        context.addServletMappingDecoded("/hello", "hello");
        tomcat.start();
        tomcat.getServer().await();
    }

    private static class Hello extends HttpServlet {
        private static final long serialVersionUID = 1;

        @Override
        protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
            response.setContentType("application/json");
            response.getWriter().write("{\"hello\":\"world\"}");
        }
    }
}
