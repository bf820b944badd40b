#!/bin/sh
# Runs svc in the container: from /data, which it may write to, and with the rules of the image, which the server itself
# knows and checks (ts/src/settings/container.ts). It ends as the server does, since it becomes the server: signals reach it.
set -eu
cd /data
export SVC_CONTAINER=1
exec node /app/bin/svc.js "$@"
