// Express on Node's http: idle connections are closed after 5 s, and each answer has an ETag and X-Powered-By.
const express = require("express");

const app = express();
app.get("/hello", (request, response) => response.json({ hello: "world" }));
app.listen(process.env.PORT, "127.0.0.1");
