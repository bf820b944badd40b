/** A request that takes long, and how a request that is too large is refused. */
import assert from 'node:assert/strict';
import type { Received } from './live-server.ts';

/** Returns a request with `count` questions of at least 20 tokens each about a state of 2,000 tokens. */
export function largeRequest(count: number): string {
  const ask = (index: number) => [
    `q${index}`,
    {
      type: 'noul',
      instructions: `Does the customer of parcel ${index} ask us to send the money back before the end of this week?`,
    },
  ];
  const state = 'The order was late and the box was open. '.repeat(200);
  return JSON.stringify({
    state,
    questions: Object.fromEntries(Array.from({ length: count }, (_, index) => ask(index))),
  });
}

/** Fails unless a request was refused with a status and a message; 503 says when to come again. */
export function assertRefused({ status, headers, text }: Received, expected: number, message: RegExp): void {
  assert.equal(status, expected, text);
  assert.match(text, message);
  if (expected === 503) assert.match(String(headers['retry-after']), /^[1-9]\d*$/);
}
