/** The load of `svc bench`: requests over a fixed number of connections, and the times of their answers. */
import { once } from 'node:events';
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { errorCode } from '../../files/system-error.ts';
import { socketOf } from '../../network/reach.ts';

/** The server, and the headers of each request. */
export interface Target {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
}

export interface LoadOptions extends Target {
  /** Returns the body of the next request. */
  readonly nextBody: () => Buffer;
  readonly concurrency: number;
  readonly seconds: number;
  /** Ends the load early; requests under way are still answered. */
  readonly stop: AbortSignal;
}

/** The time of one answer in milliseconds: as it was seen here, and its parts as the server says. */
export interface Sample {
  readonly totalMs: number;
  readonly waitMs: number;
  readonly runMs: number;
}

export interface LoadResult {
  readonly seconds: number;
  readonly samples: readonly Sample[];
  /** The number of requests without a decision, by the status, or the error of the connection. */
  readonly failures: ReadonlyMap<string, number>;
}

/** The response to one request. */
export interface Answer {
  /** The HTTP status; 0 if there was no response. */
  readonly status: number;
  /** The body; the error of the connection if there was no response. */
  readonly text: string;
  readonly timing: string;
}

/** The sockets of a load: as many as are used at once, and kept open. */
export type Sockets = HttpAgent | HttpsAgent;

export function openSockets({ url }: Target, concurrency: number): Sockets {
  const Agent = url.protocol === 'https:' ? HttpsAgent : HttpAgent;
  return new Agent({ keepAlive: true, maxSockets: concurrency });
}

/** Sends one request and resolves with the response; it never rejects. */
export async function send({ url, headers }: Target, body: Buffer, agent: Sockets): Promise<Answer> {
  const request = url.protocol === 'https:' ? httpsRequest : httpRequest;
  const options = { method: 'POST', agent, headers: { ...headers, 'content-length': body.length } };
  const socketPath = socketOf(url);
  const sent =
    socketPath === undefined ? request(url, options) : request({ ...options, socketPath, path: url.pathname });
  try {
    const [response] = (await once(sent.end(body), 'response')) as [IncomingMessage];
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(chunk);
    const timing = String(response.headers['server-timing'] ?? '');
    return { status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString('utf8'), timing };
  } catch (error) {
    return { status: 0, text: errorCode(error) || String(error), timing: '' };
  }
}

/** Keeps `concurrency` requests under way until the time is over, and resolves when all of them are answered. */
export async function runLoad(options: LoadOptions): Promise<LoadResult> {
  const { nextBody, concurrency, seconds, stop } = options;
  const agent = openSockets(options, concurrency);
  const samples: Sample[] = [];
  const failures = new Map<string, number>();
  const beginMs = performance.now();
  const keepAsking = async () => {
    while (performance.now() - beginMs < seconds * 1000 && !stop.aborted) {
      const startMs = performance.now();
      const { status, text, timing } = await send(options, nextBody(), agent);
      if (status === 200) {
        const totalMs = performance.now() - startMs;
        samples.push({ totalMs, waitMs: durationOf(timing, 'wait'), runMs: durationOf(timing, 'run') });
      } else {
        const what = status === 0 ? text : String(status);
        failures.set(what, (failures.get(what) ?? 0) + 1);
      }
    }
  };
  try {
    await Promise.all(Array.from({ length: concurrency }, keepAsking));
  } finally {
    agent.destroy();
  }
  return { seconds: (performance.now() - beginMs) / 1000, samples, failures };
}

/** Returns a duration of a `Server-Timing` header in milliseconds; NaN if the header lacks it. */
function durationOf(timing: string, name: string): number {
  return Number(new RegExp(`(?:^|,\\s*)${name};dur=([\\d.]+)`).exec(timing)?.[1] ?? Number.NaN);
}
