/** A fake server of decisions: it records its requests, and a test says how it answers. */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { type Asked, askedQuestions } from '../../src/file-run/asked.ts';
import type { Decider } from '../../src/file-run/decider.ts';
import { memberTexts, objectText } from '../../src/file-run/json-text.ts';
import { type ServersOptions, serversDecider } from '../../src/file-run/servers.ts';
import { loadConfig } from '../../src/settings/config.ts';

export const QUESTIONS = '{"q":{"type":"noul"}}';

/** Returns a server's answer to `body`, in which the first option of each question has the probability `share`. */
export function answerTo(body: string, share = 0.75): string {
  const asked = askedQuestions(memberTexts(body)?.get('questions') ?? '');
  const answers = asked.map((question) => [question.id, JSON.stringify(answerOf(question, share))] as const);
  return `{"model":"svc","answers":${objectText(answers)},"usage":{"input_tokens":${body.length},"output_tokens":0}}`;
}

function answerOf({ type, labels, legend }: Asked, share: number) {
  const rest = millionths((1 - share) / (labels.length - 1));
  const shares = labels.map((_, at) => (at === 0 ? share : rest));
  const top = shares.indexOf(Math.max(...shares));
  const byLabel = (values: readonly unknown[]) => Object.fromEntries(labels.map((label, at) => [label, values[at]]));
  return {
    type,
    ...(type === 'noul' && { noul: rest }),
    ...(type === 'choice' && { choice: labels[top] }),
    ...(type === 'score' && { score: millionths(shares.reduce((sum, each, level) => sum + each * level, 0)) }),
    probabilities: byLabel(shares),
    confidence: 0.5,
    answer_confidence: shares[top],
    ...(type === 'score' && { legend: byLabel(legend) }),
  };
}

const millionths = (value: number) => Number(value.toFixed(6));

/** The answer to the request that `ask` makes. */
export const ANSWER = answerTo(`{"state":"x","questions":${QUESTIONS}}`);

export const well = (res: ServerResponse) => res.end(ANSWER);

interface Request {
  readonly body: string;
  readonly headers: IncomingHttpHeaders;
  readonly port: number | undefined;
}

export type Answering = (res: ServerResponse, body: string, n: number) => unknown;

/** A server that records its requests and answers them with the function given to `start`. */
export class FakeServer {
  readonly asked: Request[] = [];
  readonly probes: string[] = [];
  answerProbe: Answering = (res, body) => res.end(answerTo(body));
  /** The `sha256` in its health record. */
  sha256: string | undefined;
  /** Whether the server takes connections but answers nothing. */
  isFrozen = false;
  open = 0;
  most = 0;
  #url = '';

  get url(): string {
    return this.#url;
  }

  static async start(t: TestContext, answer: Answering): Promise<FakeServer> {
    const fake = new FakeServer();
    const server = createServer(async (req, res) => {
      if (fake.isFrozen) return;
      if (req.url === '/health') {
        res.end(JSON.stringify({ sha256: fake.sha256 }));
        return;
      }
      fake.open += 1;
      fake.most = Math.max(fake.most, fake.open);
      res.on('close', () => {
        fake.open -= 1;
      });
      const body = (await buffer(req)).toString();
      if (/^svc-batch-probe-\d+$/.test(String(req.headers['x-request-id']))) {
        fake.probes.push(body);
        fake.answerProbe(res, body, fake.probes.length);
        return;
      }
      fake.asked.push({ body, headers: req.headers, port: req.socket.remotePort });
      await answer(res, body, fake.asked.length);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(() => {
      server.closeAllConnections();
      server.close();
    });
    fake.#url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    return fake;
  }
}

export const failing =
  (status: number, headers: Record<string, string> = {}, text = 'it failed') =>
  (res: ServerResponse) =>
    res.writeHead(status, headers).end(text);

export async function decider(
  options: Partial<ServersOptions> & Pick<ServersOptions, 'urls'>,
  stop: AbortSignal = new AbortController().signal,
): Promise<Decider> {
  const { config } = loadConfig({ env: { SVC_API_KEY: 'a-key-of-sixteen-characters' }, cwd: '/' });
  const usual = { concurrency: 2, giveUpMs: 60_000, mayDiffer: false, config, tell: () => {} };
  return serversDecider({ ...usual, ...options }, stop);
}

export const ask = (servers: Decider, state: unknown = 'x') =>
  servers.decide({ stateJson: JSON.stringify(state), questionsJson: QUESTIONS });
