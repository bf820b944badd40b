/** `svc mcp`: decisions as tools of the Model Context Protocol, on stdin and stdout, or over HTTP on loopback. */
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import type { Engine } from '../engine/contract.ts';
import { createLog } from '../log/log.ts';
import { tell } from '../log/tell.ts';
import { createMcpApp, UNCOUNTED } from '../mcp/app.ts';
import { type Decide, decideHere, decideThere } from '../mcp/decider.ts';
import { createProtocolServer } from '../mcp/protocol-server.ts';
import { loadConfiguredEngine } from '../model/load.ts';
import { type HostAddress, isLoopback, parseAddress, shownAddress } from '../network/address.ts';
import { WrongUsage } from '../refusal.ts';
import { connectionLimit } from '../server/connections.ts';
import { createHttpServer } from '../server/http-server.ts';
import { Lifecycle } from '../server/lifecycle.ts';
import { stopOnSignal } from '../server/stop-on-signal.ts';
import { type Config, type Flags, loadConfig } from '../settings/config.ts';
import { resolveApiKeys } from '../settings/credentials.ts';

export interface McpFlags extends Flags {
  /** The URL of the server that decides; without it the model is loaded in this process. */
  readonly url?: string;
}

/** The decisions behind the tools, and their end. */
interface Decisions {
  readonly decide: Decide;
  close(): Promise<void>;
}

/**
 * Serves the tools on stdin and stdout until stdin ends, or with `flags.listen` over HTTP until a signal ends the
 * process. Resolves once it serves.
 *
 * @throws Refusal when a setting is wrong, the address is not loopback, or the port is taken.
 */
export async function mcp({ listen, ...flags }: McpFlags): Promise<void> {
  const { config, warnings } = loadConfig({ flags });
  const address = listen === undefined ? undefined : loopbackAddress(listen);
  if (address === undefined) {
    for (const warning of warnings) tell(warning);
    await serveStdio(decisions(flags, config), config);
  } else await serveHttp({ ...config, listen: address }, { flags, warnings });
}

/**
 * Returns the address of the tools over HTTP. The protocol's own ways to prove who calls are not spoken here, so only
 * this machine may.
 */
function loopbackAddress(text: string): HostAddress {
  const address = parseAddress(text);
  if (address !== undefined && 'host' in address && isLoopback(address.host)) return address;
  throw new WrongUsage('--listen: must be a loopback address, such as 127.0.0.1:21120');
}

function decisions({ url }: McpFlags, config: Config): Decisions {
  if (url !== undefined) return { decide: decideThere(url, config), close: async () => {} };
  // A client wants an answer to its first message at once, so the model is loaded meanwhile.
  const loading = loadConfiguredEngine(config).then(({ engine }) => engine);
  loading.catch(endWith);
  return { decide: decideHere(loading), close: () => loading.then((engine: Engine) => engine.close()) };
}

/** Ends the process, since no tool could ever answer. */
function endWith(error: unknown): void {
  tell(error instanceof Error ? error.message : String(error));
  process.exit(1);
}

/** Serves one client, whose last calls are answered even if it has closed its end, unless they take too long. */
async function serveStdio({ decide, close }: Decisions, { drainMs }: Pick<Config, 'drainMs'>): Promise<void> {
  const calls = new Set<Promise<string>>();
  const server = createProtocolServer((request, signal) => {
    const call = decide(request, signal);
    calls.add(call);
    const over = () => calls.delete(call);
    call.then(over, over);
    return call;
  });
  const answered = async () => {
    do {
      await Promise.allSettled(calls);
      // The server reads a message, and writes an answer, in the promise jobs before this.
      await setImmediate();
    } while (calls.size > 0);
  };
  const end = async () => {
    await Promise.race([answered(), sleep(drainMs, undefined, { ref: false })]);
    if (calls.size > 0) tell('drain_ms is over, open calls are cut off');
    // This tells the calls that nobody waits for them.
    await server.close();
    await close();
  };
  process.stdin.once('end', () => void setImmediate().then(end));
  await server.connect(new StdioServerTransport());
}

interface HttpParts {
  readonly flags: McpFlags;
  readonly warnings: readonly string[];
}

async function serveHttp(config: Config, { flags, warnings }: HttpParts): Promise<void> {
  const { log } = createLog({ level: config.logLevel, format: config.logFormat, isTerminal: process.stderr.isTTY });
  for (const warning of warnings) log.warn(warning);
  const credential = resolveApiKeys(config);
  log.info(credential.status);
  const { decide, close } = decisions(flags, config);
  const lifecycle = new Lifecycle();
  const app = createMcpApp({ config, keys: credential.secrets, decide, lifecycle, log });
  const server = createHttpServer({
    app,
    config,
    slot: { model: undefined },
    lifecycle,
    log,
    metrics: UNCOUNTED,
    maxConnections: connectionLimit(1),
  });
  stopOnSignal(log, async () => {
    await server.drain();
    await close();
  });
  log.info(`listening on ${shownAddress(await server.listen(config.listen))}/mcp`);
}
