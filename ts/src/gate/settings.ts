/** The settings of the gate: defaults, then `GATE_*` variables, then flags. */
import { type Address, isLoopback, parseAddress, socketIn } from '../network/address.ts';
import { socketUrl } from '../network/reach.ts';
import { Refusal, WrongUsage } from '../refusal.ts';
import { wantedValue } from '../schemas/config.ts';
import type { Config, Environment, Flags } from '../settings/config.ts';
import { type Credential, resolveApiKeys } from '../settings/credentials.ts';
import { hostAndPort } from '../settings/host-and-port.ts';
import { withMode } from '../settings/listen-mode.ts';
import { Secret } from '../settings/secret.ts';
import type { ForwardTimeouts } from './forward.ts';
import { bareHost } from './loop.ts';

/**
 * The flags of `svc gate`, as typed. Those of `svc serve` are passed to the server that `--run` starts beside the gate.
 */
export interface GateFlags extends Flags {
  readonly upstream?: string;
  readonly connectTimeoutMs?: string;
  readonly timeoutMs?: string;
  readonly batchTimeoutMs?: string;
  /** Whether the gate also starts the server beside it. */
  readonly run?: boolean;
  /** Whether keys are checked; false switches the check off. */
  readonly key?: boolean;
}

interface GateSettings {
  readonly listen: Address;
  /** Scheme, host and port of the server behind the gate, or its socket. */
  readonly upstream: URL;
  /** The key of the server behind the gate; undefined if the server has none. */
  readonly upstreamKey: Secret | undefined;
  readonly timeouts: ForwardTimeouts;
  readonly credential: Credential;
  /** The warnings, one line each. */
  readonly warnings: readonly string[];
}

/** The defaults. By its own defaults, a server takes at most 60 s in its queue and 60 s on the model for a request. */
const DEFAULTS = {
  listen: '127.0.0.1:21118',
  upstream: 'http://127.0.0.1:21119',
  connectTimeoutMs: '5000',
  timeoutMs: '130000',
  batchTimeoutMs: '3600000',
};

/** The longest time that Node's timers accept. */
const MAX_MS = 2 ** 31 - 1;

type Value = readonly [text: string, where: string];

/**
 * Returns the settings of the gate.
 *
 * @param config - The configuration of the process, which the rules for credentials need.
 *
 * @throws Refusal when a value is wrong, or when there is no key and `--no-key` was not given.
 */
export function gateSettings(flags: GateFlags, env: Environment, config: Config): GateSettings {
  const value = (flag: keyof typeof DEFAULTS): Value => {
    const name = flag.replace(/[A-Z]/g, (letter) => `_${letter}`);
    const variable = `GATE_${name.toUpperCase()}`;
    const text = flags[flag];
    if (text !== undefined) return [text, `--${name.replaceAll('_', '-').toLowerCase()}`];
    return [env[variable]?.trim() || DEFAULTS[flag], variable];
  };
  const credential = gateKey(env.GATE_API_KEY?.trim() ?? '', flags.key ?? true, config);
  const upstreamKey = serverKey(env.GATE_UPSTREAM_KEY?.trim() ?? '', config);
  const isUnused = upstreamKey !== undefined && (flags.run ?? false);
  return {
    listen: withMode(ownAddress(flags, address(value('listen'))), config.listenMode),
    upstream: upstreamUrl(value('upstream'), flags.run ?? false),
    timeouts: {
      connectMs: milliseconds(value('connectTimeoutMs')),
      silenceMs: milliseconds(value('timeoutMs')),
      batchMs: milliseconds(value('batchTimeoutMs')),
    },
    upstreamKey: isUnused ? undefined : upstreamKey,
    credential,
    warnings: [
      ...credential.warnings,
      ...(isUnused ? ['GATE_UPSTREAM_KEY is not used: the server of --run has no key'] : []),
    ],
  };
}

function address([text, where]: Value): Address {
  const parsed = parseAddress(text);
  if (parsed === undefined) throw wrong(where, wantedValue('listen'));
  return parsed;
}

/** Returns the address with the host and the port of the flags, where these are given. */
function ownAddress(flags: GateFlags, named: Address): Address {
  const setting = hostAndPort(flags, named);
  return setting === undefined ? named : address([setting.value, setting.where]);
}

/** Returns the refusal of a value; that of a flag is wrong usage. */
function wrong(where: string, wanted: string): Refusal {
  const Kind = where.startsWith('--') ? WrongUsage : Refusal;
  return new Kind(`${where}: must be ${wanted}`);
}

/**
 * Returns the URL of the upstream. A path or a query would not be passed on, so only an origin or a socket is accepted.
 * The server beside the gate must be on loopback or on a socket, so that only this machine reaches it.
 */
function upstreamUrl([text, where]: Value, runs: boolean): URL {
  const socket = socketIn(text);
  if (socket !== undefined) return socketUrl(socket);
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isOrigin = url !== undefined && [url.origin, `${url.origin}/`].includes(text.toLowerCase());
  if (!isOrigin || !/^https?:$/.test(url.protocol)) {
    throw wrong(where, `the origin of a server, such as ${DEFAULTS.upstream}, or unix:/PATH`);
  }
  if (runs && !(url.protocol === 'http:' && isLoopback(bareHost(url)))) {
    throw wrong(where, `a loopback address with --run, such as ${DEFAULTS.upstream}`);
  }
  return url;
}

function milliseconds([text, where]: Value): number {
  const value = /^\d{1,10}$/.test(text) ? Number(text) : 0;
  if (value < 1 || value > MAX_MS) throw wrong(where, `a whole number from 1 to ${MAX_MS}`);
  return value;
}

function gateKey(text: string, isChecked: boolean, config: Config): Credential {
  if (!isChecked) {
    const warnings = text === '' ? [] : ['the api key from GATE_API_KEY is not checked: --no-key'];
    return { secrets: [], status: 'API key off: --no-key', warnings };
  }
  if (text === '') throw new Refusal('GATE_API_KEY is not set: give a key of at least 16 characters, or --no-key');
  return resolveApiKeys({ ...config, apiKey: [new Secret(text, 'GATE_API_KEY')], allowNoApiKey: false });
}

function serverKey(text: string, config: Config): Secret | undefined {
  if (text === '') return undefined;
  const key = new Secret(text, 'GATE_UPSTREAM_KEY');
  return resolveApiKeys({ ...config, apiKey: [key], allowNoApiKey: false }).secrets[0];
}
