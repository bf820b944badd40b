/** The card of the KV cache: how often it had the chunk that was needed, and how much memory it takes. */
import { bar } from './answer-view.ts';
import type { FieldName } from './fields.ts';
import { type Html, html } from './html.ts';
import type { Snapshot } from './snapshot.ts';
import { tile } from './tile.ts';

/** Returns the card. `write` writes a field so that the browser can find it again. */
export function stateCacheCard(snapshot: Pick<Snapshot, 'state_cache'>, write: (name: FieldName) => Html): Html {
  return html`<section class="card" aria-labelledby="kept">
  <h2 id="kept">Kept states</h2>
  <p class="muted">What the model has read of a state is kept, chunk by chunk, for the next question about it. Counted since the model was loaded.</p>
  <p class="note">${write('cache_note')}</p>
  <dl class="tiles four">
  ${tile('Already read', write('cache_share'), html`${write('cache_hits')} of ${write('cache_needed')} chunks`)}
  ${tile('Read anew', write('cache_misses'), html`chunks not kept, or not any more`)}
  ${tile('Memory', write('cache_bytes'), html`of ${write('cache_limit')}, in ${write('cache_entries')} entries<span data-cache-bar>${stateCacheBar(snapshot)}</span>`)}
  ${tile('Made room', write('cache_evictions'), html`entries gone, least recently used first`)}
  </dl>
</section>`;
}

/** Returns the used share of the memory that the KV cache may take, as a bar. The numbers next to it say the same. */
export function stateCacheBar({ state_cache: { bytes, limit_bytes } }: Pick<Snapshot, 'state_cache'>): Html {
  return html`<span aria-hidden="true">${bar(limit_bytes === 0 ? 0 : bytes / limit_bytes)}</span>`;
}
