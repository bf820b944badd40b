/** The API's page: the OpenAPI document, shown by a maintained renderer from the server's own files only. */
import { html } from './html.ts';

/** Returns the page. */
export function docsPage({ script, style }: { readonly script: string; readonly style: string }): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>API · svc</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${style}">
<script type="module" src="${script}"></script>
</head>
<body>
<div id="api"></div>
</body>
</html>
`.toString();
}
