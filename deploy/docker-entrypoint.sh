#!/bin/sh
# Runs svc in the container: in /data, to which it may write, and with the rules of the image, which the server itself
# knows and checks (ts/src/settings/container.ts). This script becomes the server, so signals reach the server, and its
# exit code is that of the container.
set -eu
cd /data
export SVC_CONTAINER=1
exec node /app/bin/svc.js "$@"
