/** The answering side of `svc ask`: the engine in this process, or a server. */
import { ERROR_STATUS } from '../errors.ts';
import { loadConfiguredEngine } from '../model/load.ts';
import { askServer } from '../network/ask-server.ts';
import { decisionUrl } from '../network/decision-url.ts';
import { Refusal } from '../refusal.ts';
import type { Config } from '../settings/config.ts';

/** The refusal of a request that is wrong itself, so that the message is about the file or the line it came from. */
export class WrongRequest extends Refusal {}

export interface Asker {
  /**
   * Resolves with the body of the answer to a request's body.
   *
   * @throws WrongRequest when the request is wrong; Refusal when there is no answer for another reason.
   */
  ask(request: Buffer): Promise<Buffer>;
  close(): Promise<void>;
}

/** The statuses of a request that is wrong itself: it would be wrong anywhere. */
const OF_REQUEST: ReadonlySet<number> = new Set([400, 413, 422]);

/**
 * Returns the asker of the server at `url`, or without one the asker of the configured model, which is then loaded.
 *
 * @throws Refusal when the model cannot be loaded, or the address is none.
 */
export async function openAsker(config: Config, url: string | undefined): Promise<Asker> {
  if (url !== undefined) return serverAsker(config, decisionUrl(url));
  const { engine } = await loadConfiguredEngine(config);
  return {
    async ask(request) {
      const reply = await engine.decide(request);
      if (reply.failure === undefined) return reply.body;
      const { code, message } = reply.failure;
      throw refusal((ERROR_STATUS as Readonly<Record<string, number>>)[code] ?? 500, message);
    },
    close: () => engine.close(),
  };
}

function serverAsker(config: Config, endpoint: URL): Asker {
  return {
    async ask(request) {
      const answer = await askServer(endpoint, { request, config });
      if (answer.body !== undefined) return answer.body;
      throw refusal(answer.status, answer.reason);
    },
    close: async () => {},
  };
}

function refusal(status: number, message: string): Refusal {
  return new (OF_REQUEST.has(status) ? WrongRequest : Refusal)(message);
}
