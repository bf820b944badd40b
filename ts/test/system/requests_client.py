"""Sends a decision in each way that plain `requests` offers: python requests_client.py URL KEY, with the body on stdin.

Writes a line of JSON for each to stdout: the way, the status, and the body of the answer.
"""
import gzip
import http.client
import json
import sys
import zlib

import requests

url, key = sys.argv[1:]
body = sys.stdin.buffer.read()
authorization = {"Authorization": f"Bearer {key}"}


def show(way, **options):
    headers = {**authorization, **options.pop("headers", {})}
    answer = requests.post(url, headers=headers, timeout=30, **options)
    print(json.dumps([way, answer.status_code, answer.json()["answers"]]))


show("json", json=json.loads(body))
show("no content type", data=body)
show("a form's content type", data=body, headers={"Content-Type": "application/x-www-form-urlencoded"})
show("a content type that is none", data=body, headers={"Content-Type": "nonsense"})
show("gzip", data=gzip.compress(body), headers={"Content-Encoding": "gzip"})
show("deflate", data=zlib.compress(body), headers={"Content-Encoding": "deflate"})
show("chunked", data=iter([body[:10], body[10:]]))
show("chunked gzip", data=iter([gzip.compress(body)]), headers={"Content-Encoding": "gzip"})
show("Expect", data=body, headers={"Expect": "100-continue"})
http.client.HTTPConnection._http_vsn = 10
http.client.HTTPConnection._http_vsn_str = "HTTP/1.0"
show("HTTP/1.0", data=body)
