import { CronExpressionParser } from 'cron-parser';
import type { EncryptionKey } from '../core/encryption-key.js';
import { Secret } from '../core/secret.js';

/** What is wrong with a value. Never quotes it: a secret may have landed in the wrong variable. */
export class Problem extends Error {}

export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= min && value <= max)) throw new Problem(`must be a whole number from ${min} to ${max}`);
    return value;
  };
}

export function urlOf(text: string, protocols: readonly string[]): URL {
  const allowed = protocols.map((protocol) => `${protocol}//`).join(' or ');
  if (!URL.canParse(text))
    throw new Problem(`must be a URL that begins with ${allowed}; encode special characters of a password`);
  const url = new URL(text);
  if (!protocols.includes(url.protocol)) throw new Problem(`must begin with ${allowed}`);
  return url;
}

function httpUrlOf(text: string): URL {
  const url = urlOf(text, ['https:', 'http:']);
  if (url.username !== '' || url.password !== '') throw new Problem('must not hold a user or password');
  if (url.hash !== '') throw new Problem('must not hold a fragment (#)');
  return url;
}

export function rootUrlOf(text: string): URL {
  const url = httpUrlOf(text);
  if (url.search !== '') throw new Problem('must not hold a query (?)');
  return url;
}

export function safeUrlOf(url: URL): URL {
  if (!isSafe(url)) throw new Problem('must be https; plain http is taken only on loopback, since tokens travel with it');
  return url;
}

export function authUrlOf(text: string): URL {
  const url = safeUrlOf(rootUrlOf(text));
  if (/\/auth\/authentication(\/|$)/i.test(url.pathname)) {
    throw new Problem(
      'must not be under /auth/authentication: the service refuses token requests there; give the root, /auth/token is added',
    );
  }
  if (/\/auth\/(token|authorize)\/?$/i.test(url.pathname)) {
    throw new Problem('must be the root of the authorization server; /auth/authorize and /auth/token are added');
  }
  return url;
}

export function httpsUrlOf(text: string): URL {
  const url = httpUrlOf(text);
  if (!isSafe(url)) throw new Problem('must be https, unless its host is loopback');
  return url;
}

export function isSafe({ protocol, hostname }: URL): boolean {
  return (
    protocol === 'https:' || hostname === '[::1]' || /^(.+\.)?localhost$/.test(hostname) || /^127(\.\d{1,3}){3}$/.test(hostname)
  );
}

export function hostOf(text: string): string {
  const host = text.replace(/^\[(.*)\]$/, '$1');
  if (!/^[\w.:-]+$/.test(host)) throw new Problem('must be an IP address or a host name, without a port');
  return host;
}

export function secretTextOf(text: string): Secret {
  if (!/^[\x21-\x7e]+$/.test(text)) throw new Problem('must be plain ASCII, without spaces');
  return new Secret(text);
}

export function longSecretTextOf(text: string): Secret {
  if (text.length < 16) throw new Problem('must be at least 16 characters of plain ASCII, without spaces');
  return secretTextOf(text);
}

export function encryptionKeysOf(text: string): EncryptionKey[] {
  const problems: string[] = [];
  const keys: EncryptionKey[] = [];
  for (const [index, entry] of text.split(',').entries()) {
    const [, id, encoded] = /^\s*([A-Za-z0-9_-]{1,32}):([A-Za-z0-9+/_-]+={0,2})\s*$/.exec(entry) ?? [];
    const key = Buffer.from(encoded ?? '', 'base64');
    // Entries are named by their number: an id written in the place of a key would show the key.
    if (id === undefined) problems.push(`entry ${index + 1} is not keyid:base64`);
    else if (key.length !== 32) problems.push(`the key of entry ${index + 1} has ${key.length} bytes instead of 32`);
    else if (keys.some((other) => other.id === id)) problems.push(`the key id of entry ${index + 1} is taken already`);
    else keys.push({ id, key: new Secret(key.toString('base64')) });
  }
  if (problems.length > 0) throw new Problem(problems.join('; '));
  return keys;
}

export function cronOf(text: string): string {
  const problem = new Problem(
    'must be five fields of cron: minute, hour, day of month, month, day of week (and a sixth in front for seconds, if wanted)',
  );
  // The parser fills in missing fields, and gives H another value each time.
  if (![5, 6].includes(text.split(/\s+/).length) || /(^|\s)H/.test(text)) throw problem;
  try {
    CronExpressionParser.parse(text, { tz: 'UTC' }).next();
    return text;
  } catch {
    throw problem;
  }
}

export function timezoneOf(text: string): string {
  if (!/^[A-Za-z]/.test(text) || !isTimezone(text)) throw new Problem('must be the name of an IANA time zone');
  return text;
}

function isTimezone(name: string): boolean {
  try {
    return Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== '';
  } catch {
    return false;
  }
}

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];

export function logLevelOf(text: string): string {
  if (!LOG_LEVELS.includes(text)) throw new Problem(`must be one of ${LOG_LEVELS.join(', ')}`);
  return text;
}
