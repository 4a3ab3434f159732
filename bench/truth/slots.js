// A server of exactly 80 requests per second: four slots of 50 ms. Port 7781 of this machine alone.
const http = require('node:http')
const waiting = []
let busy = 0

function next() {
  if (busy === 4 || waiting.length === 0) return
  busy++
  const response = waiting.shift()
  setTimeout(() => {
    busy--
    response.end('ok')
    next()
  }, 50)
}

http.createServer((_, response) => {
  waiting.push(response)
  next()
}).listen(7781, '127.0.0.1')
