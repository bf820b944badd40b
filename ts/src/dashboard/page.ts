/** The frame of every operator page. */
import { type Html, html } from './html.ts';

/** The paths of the pages' static files. */
export interface AssetPaths {
  readonly script: string;
  readonly style: string;
  readonly icon: string;
}

interface PageOptions {
  readonly title: string;
  /** The path of the navigation entry of this page, or of the page above it. */
  readonly path: '/' | '/recipes';
  readonly assets: AssetPaths;
  readonly main: Html;
  /** The content at the right of the navigation. */
  readonly aside?: Html;
}

const NAVIGATION = [
  { path: '/', name: 'Dashboard' },
  { path: '/recipes', name: 'Recipes' },
] as const;

/** Returns a whole page. */
export function page({ title, path, assets, main, aside }: PageOptions): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · svc</title>
<link rel="icon" href="${assets.icon}">
<link rel="stylesheet" href="${assets.style}">
<script type="module" src="${assets.script}"></script>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header class="top">
  <div class="top-in">
    <a class="brand" href="/"><img src="${assets.icon}" alt="" width="20" height="20"> svc</a>
    <nav aria-label="Pages">${NAVIGATION.map(
      (entry) => html`<a href="${entry.path}"${entry.path === path && html` aria-current="page"`}>${entry.name}</a>`,
    )}</nav>
    ${aside}
  </div>
</header>
<main id="main" tabindex="-1">
${main}
</main>
</body>
</html>
`.toString();
}
