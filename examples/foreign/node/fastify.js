// Fastify on Node's http: idle connections are closed after 72 s.
const fastify = require("fastify")();

fastify.get("/hello", async () => ({ hello: "world" }));
fastify.listen({ port: process.env.PORT, host: "127.0.0.1" });
