// gRPC in pure JavaScript, with the schema loaded at run time: no keepalive pings, no limit on the age of a connection.
const grpc = require("@grpc/grpc-js");
const loader = require("@grpc/proto-loader");

const { helloworld } = grpc.loadPackageDefinition(loader.loadSync(process.env.PROTO));
const server = new grpc.Server();
server.addService(helloworld.Greeter.service, {
    sayHello: (call, callback) => callback(null, { message: `Hello ${call.request.name}` }),
});
server.bindAsync(`127.0.0.1:${process.env.PORT}`, grpc.ServerCredentials.createInsecure(), (error) => {
    if (error) throw error;
});
