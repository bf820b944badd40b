/** Turns sections that stand one below the other into tabs, with the usual keys of tabs. */
import { find, findAll } from './page.ts';

let count = 0;

/** Turns every `data-tabs` in `root` into tabs. */
export function makeTabs(root: ParentNode): void {
  for (const group of findAll(root, '[data-tabs]')) makeGroup(group);
}

function makeGroup(group: HTMLElement): void {
  const panels = findAll(group, '[data-tab]');
  const list = document.createElement('div');
  list.setAttribute('role', 'tablist');
  const tabs = panels.map((panel) => makeTab(panel));
  list.append(...tabs);
  group.prepend(list);
  group.removeAttribute('data-tabs');
  const select = (index: number) => {
    for (const [at, tab] of tabs.entries()) {
      tab.setAttribute('aria-selected', String(at === index));
      tab.tabIndex = at === index ? 0 : -1;
      const panel = panels[at];
      if (panel) panel.hidden = at !== index;
    }
  };
  for (const [index, tab] of tabs.entries()) tab.addEventListener('click', () => select(index));
  list.addEventListener('keydown', (event) => {
    const next = neighbour(event.key, tabs.indexOf(event.target as HTMLButtonElement), tabs.length);
    if (next === undefined) return;
    event.preventDefault();
    select(next);
    tabs[next]?.focus();
  });
  select(0);
}

function makeTab(panel: HTMLElement): HTMLButtonElement {
  count += 1;
  panel.id = `panel-${count}`;
  panel.setAttribute('role', 'tabpanel');
  find(panel, 'h4').hidden = true;
  const tab = document.createElement('button');
  tab.type = 'button';
  tab.id = `tab-${count}`;
  tab.textContent = panel.dataset.tab ?? '';
  tab.setAttribute('role', 'tab');
  tab.setAttribute('aria-controls', panel.id);
  panel.setAttribute('aria-labelledby', tab.id);
  return tab;
}

function neighbour(key: string, index: number, length: number): number | undefined {
  if (key === 'Home') return 0;
  if (key === 'End') return length - 1;
  const step = { ArrowLeft: -1, ArrowRight: 1 }[key];
  return step === undefined || index < 0 ? undefined : (index + step + length) % length;
}
