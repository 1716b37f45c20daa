import { MusterError } from '../../core/errors.js';

/** One place where a server may listen. */
export interface DatabaseHost {
  /** A name, an IP address, or the folder of a Unix socket, which begins with a slash. */
  readonly host: string;
  readonly port: number;
}

/** DATABASE_URL, with every part decoded. */
export interface DatabaseAddress {
  /** At least one; with several, the primary is looked for among them. */
  readonly hosts: readonly DatabaseHost[];
  /** Empty where the address names none: the driver then takes that of the operating system. */
  readonly user: string;
  readonly password: string;
  /** Empty where the address names none: the server then takes the name of the user. */
  readonly database: string;
  /** Every other parameter. */
  readonly parameters: URLSearchParams;
}

/** Why an address cannot be used. No text quotes a part of it, as each may hold a piece of a password. */
export class AddressFault extends MusterError {
  readonly problem: string;

  constructor(problem: string) {
    super('invalid_configuration', `DATABASE_URL: ${problem}`);
    this.problem = problem;
  }
}

const PROTOCOL = /^postgres(ql)?:\/\//i;
/** User and password end at the last @ before the first slash, question mark or hash. */
const PARTS = /^[^:]+:\/\/(?:([^/?#]*)@)?([^/?#]*)(?:\/([^/?#@]*))?(?:\?([^#]*))?$/;
const NOT_ENCODED =
  'must be a URL; encode special characters of its names and its password (%2F for /, %3F for ?, %23 for #, %40 for @)';
const PLACE = /^(\[[^\]]*\]|[^:]*)(?::(.*))?$/;

const TLS_MODES = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full', 'no-verify'];
/** Muster writes, so each of these means the primary: even `any`, which libpq takes for granted. */
const SESSION_TARGETS = new Set(['read-write', 'primary', 'any']);

/**
 * Reads an address as libpq does, several hosts included
 * (https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING-URIS). Throws AddressFault.
 */
export function readDatabaseAddress(text: string): DatabaseAddress {
  if (!PROTOCOL.test(text)) throw new AddressFault('must be a URL that begins with postgres:// or postgresql://');
  const parts = PARTS.exec(text);
  const [, login = '', places = '', path = '', query = ''] = parts ?? [];
  const parameters = new URLSearchParams(query);
  // A password that is not encoded may end up in a name.
  if (!parts || [...parameters.keys()].some((name) => !/^\w+$/.test(name))) throw new AddressFault(NOT_ENCODED);
  const take = (name: string) => {
    const value = parameters.get(name) ?? '';
    parameters.delete(name);
    return value;
  };
  const [writtenUser = '', ...writtenPassword] = login.split(':');
  const address = {
    hosts: hostsOf(places, take('host'), take('port')),
    user: take('user') || decoded(writtenUser),
    password: take('password') || decoded(writtenPassword.join(':')),
    database: take('dbname') || decoded(path),
    parameters,
  };
  if (/[?#]/.test(address.database)) throw new AddressFault('the name of the database must hold neither ? nor #');
  if (parameters.has('hostaddr')) throw new AddressFault('hostaddr is not supported; give the IP address as the host');
  const mode = parameters.get('sslmode');
  if (mode !== null && !TLS_MODES.includes(mode)) throw new AddressFault(`sslmode must be one of ${TLS_MODES.join(', ')}`);
  const target = take('target_session_attrs');
  if (target !== '' && !SESSION_TARGETS.has(target))
    throw new AddressFault('target_session_attrs must be read-write, primary or any: Muster writes, and uses the primary alone');
  // Only one server is the primary, so that no load can be balanced.
  parameters.delete('load_balance_hosts');
  return address;
}

/** How messages name a host: `db.example.com:5432`, or the file of a socket. */
export function placeOf({ host, port }: DatabaseHost): string {
  if (isSocket({ host })) return `${host}/.s.PGSQL.${port}`;
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

export function placesOf({ hosts }: Pick<DatabaseAddress, 'hosts'>): string {
  return hosts.map(placeOf).join(', ');
}

export function isSocket({ host }: Pick<DatabaseHost, 'host'>): boolean {
  return host.startsWith('/');
}

/** `places` stands before the path; a parameter of the query wins against it. */
function hostsOf(places: string, hostParameter: string, portParameter: string): DatabaseHost[] {
  const written = places.split(',').map((place) => {
    const [, host, port = ''] = PLACE.exec(place) ?? [];
    if (host === undefined) throw new AddressFault('put an IPv6 address into brackets');
    return { host: decoded(host), port };
  });
  const hosts = hostParameter === '' ? written.map(({ host }) => host) : hostParameter.split(',');
  const ports = portParameter === '' ? written.map(({ port }) => port) : portParameter.split(',');
  if (ports.length !== 1 && ports.length !== hosts.length)
    throw new AddressFault('must give one port, or as many ports as hosts');
  return hosts.map((host, index) => ({
    host: host.replace(/^\[(.*)\]$/, '$1') || 'localhost',
    port: portOf(ports[index] ?? ports[0]!),
  }));
}

function portOf(text: string): number {
  const written = text || '5432';
  const port = Number(written);
  if (!/^\d{1,5}$/.test(written) || port < 1 || port > 65_535)
    throw new AddressFault(
      'a port must be a number from 1 to 65535; encode special characters of the password (%2F for /, %3F for ?)',
    );
  return port;
}

/** A lone per cent sign stands for itself, as it does for the driver. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replace(/%(?![\da-f]{2})/gi, '%25'));
  } catch {
    throw new AddressFault('what is encoded by % must be UTF-8, as in caf%C3%A9');
  }
}
