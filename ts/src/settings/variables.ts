/**
 * The environment variables that have a meaning here, and the warnings about those that only look as if they had one.
 */
import type { Address } from '../network/address.ts';
import { type ConfigKey, ConfigSchema } from '../schemas/config.ts';
import { nearestName } from '../schemas/nearest.ts';

/** The keys of `svc.json` that have no variable, and the advice about each. */
const NO_VARIABLE: Readonly<Partial<Record<ConfigKey, string>>> = {
  listen: 'set listen in svc.json, or give --listen HOST:PORT',
  device: 'set device in svc.json, or give --device NAME',
  generated: 'it is a mark of the server in the svc.json that it makes',
};

/** The parts of an address for which other servers have a variable of that name, and the advice about each. */
const OF_ADDRESS: Readonly<Record<string, string>> = {
  host: 'set listen in svc.json, or give --host HOST',
  port: 'set listen in svc.json, or give --port PORT',
};

/** The variables that stand for no key: those of the server, and of the programs and files that come with it. */
const OWN_VARIABLES = [
  'SVC_CONFIG',
  'SVC_CONTAINER',
  'SVC_DATA',
  // Variables of the installer, of deploy/haproxy and deploy/proxy, of examples, and of the project's own scripts and
  // tests.
  'SVC_RELEASES',
  'SVC_BALANCER',
  'SVC_BALANCER_STATS',
  'SVC_SITE',
  'SVC_UPSTREAM',
  'SVC_URL',
  'SVC_RELEASE_FOLDER',
  'SVC_DAMAGED',
  'SVC_FUZZ_BODIES',
];
const NUMBERED = /^SVC_SERVER_\d+$/;

/** The variables that Kubernetes gives each container for a service with the name `svc` or `svc-…`. */
const OF_KUBERNETES = /_SERVICE_(HOST|PORT)(_|$)|_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$/;
const SERVICE_PORT = /^SVC_(\w+_)?PORT$/;
const SERVICE_URL = /^(tcp|udp|sctp):\/\//;

/** Returns the variable that sets `key`; undefined when there is none. */
export function variableOf(key: ConfigKey): string | undefined {
  return key in NO_VARIABLE ? undefined : variableName(key);
}

/** Returns one line for each `SVC_*` variable that is set and has no effect. */
export function unknownVariables(env: Readonly<Record<string, string | undefined>>): string[] {
  return Object.entries(env).flatMap(([name, value]) => {
    const isSet = name.startsWith('SVC_') && value !== undefined && value !== '';
    return isSet && !isKnown(name, value) ? [noEffect(name)] : [];
  });
}

/**
 * Returns the warning of a server that listens on another port than `PORT`, which hosts of programs set; undefined when
 * there is nothing to warn of.
 */
export function unusedPort(
  { PORT = '' }: Readonly<Record<string, string | undefined>>,
  listen: Address,
): string | undefined {
  const isPort = /^\d{1,5}$/.test(PORT) && Number(PORT) > 0;
  if (!isPort || ('port' in listen && Number(PORT) === listen.port)) return undefined;
  return `PORT has no effect: to listen on port ${PORT}, set listen in svc.json, or give --port ${PORT}`;
}

function isKnown(name: string, value: string): boolean {
  if (settingVariables().includes(name) || OWN_VARIABLES.includes(name) || NUMBERED.test(name)) return true;
  return OF_KUBERNETES.test(name) || (SERVICE_PORT.test(name) && SERVICE_URL.test(value));
}

function noEffect(name: string): string {
  const advice = Object.entries({ ...NO_VARIABLE, ...OF_ADDRESS });
  const instead = advice.find(([key]) => variableName(key) === name)?.[1];
  if (instead !== undefined) return `${name} has no effect: ${instead}`;
  const nearest = nearestName(name, [...settingVariables(), 'SVC_CONFIG', 'SVC_DATA'], 'SVC_');
  return `${name} has no effect: there is no such variable${nearest ? `; is ${nearest} meant?` : ''}`;
}

function settingVariables(): string[] {
  return (Object.keys(ConfigSchema.properties) as ConfigKey[]).map(variableOf).filter((name) => name !== undefined);
}

const variableName = (key: string) => `SVC_${key.toUpperCase()}`;
