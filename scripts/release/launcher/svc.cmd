@echo off
rem Runs svc with the Node that came with it.
"%~dp0..\lib\node.exe" "%~dp0..\lib\node_modules\@svc\server\bin\svc.js" %*
