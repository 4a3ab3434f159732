// Its keep-alive timeout is 1 s: connections that idle for 1 s stay, and requests on those that idle for 2 s may meet the close.
// Port 7790 of this machine alone.
const http = require('node:http')

const server = http.createServer((request, response) => {
  request.resume()
  request.on('end', () => response.end('ok'))
})
server.keepAliveTimeout = 1000
server.listen(7790, '127.0.0.1')
