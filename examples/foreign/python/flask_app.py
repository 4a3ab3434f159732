"""Flask. Under gunicorn's default worker (sync, one request at a time) each answer says Connection: close; Flask's development server speaks
HTTP/1.1 and closes as well."""

from flask import Flask, jsonify

app = Flask(__name__)


@app.get("/hello")
def hello():
    return jsonify(hello="world")
