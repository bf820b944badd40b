/** The script of all operator pages: it starts the parts that the current page has a place for. */
import { takePassword } from './access.ts';
import { addCopyButtons } from './copy.ts';
import { goLive, localizeTimes } from './live.ts';
import { findAll } from './page.ts';
import { startPlayground, writeOrigin } from './playground.ts';
import { makeTabs } from './tabs.ts';

takePassword();
for (const part of findAll(document, '[data-needs-script]')) part.hidden = false;
const playground = document.querySelector<HTMLElement>('[data-playground]');
if (playground) startPlayground(playground);
writeOrigin();
makeTabs(document);
addCopyButtons(document);
localizeTimes();
if (document.querySelector('[data-live]')) goLive();
