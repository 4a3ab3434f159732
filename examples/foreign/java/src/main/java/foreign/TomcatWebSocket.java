package foreign;

import jakarta.websocket.OnMessage;
import jakarta.websocket.server.ServerEndpoint;
import org.apache.catalina.Context;
import org.apache.catalina.startup.Tomcat;
import org.apache.tomcat.websocket.server.WsSci;

/** An echo over jakarta.websocket in embedded Tomcat: compression if the client offers it, messages of 8 KiB at most, no idle timeout. */
public class TomcatWebSocket {
    @ServerEndpoint("/echo")
    public static class Echo {
        @OnMessage
        public String echo(String message) {
            return message;
        }
    }

    public static void main(String[] arguments) throws Exception {
        Tomcat tomcat = Embedded.tomcat();
        Context context = tomcat.addContext("", null);
        context.addServletContainerInitializer(new WsSci(), java.util.Set.of(Echo.class));
        Tomcat.addServlet(context, "default", "org.apache.catalina.servlets.DefaultServlet");
        context.addServletMappingDecoded("/", "default");
        tomcat.start();
        tomcat.getServer().await();
    }
}
