import { CronExpressionParser } from 'cron-parser';
import { z } from 'zod';
import { type EncryptionKey, Secret } from '../core/secret.js';

// What the texts of environment variables may be. No message quotes the text: a secret may have landed in the wrong variable.

/** A refinement after which nothing further is asked: what follows may rely on it. */
const orEnd = (error: string) => ({ error, abort: true });

export function wholeNumber(min: number, max: number) {
  const isRight = (text: string) => /^\d{1,9}$/.test(text) && Number(text) >= min && Number(text) <= max;
  return z
    .string()
    .refine(isRight, orEnd(`must be a whole number from ${min} to ${max}`))
    .transform(Number);
}

/** A URL as it was written: drivers read the texts of theirs themselves. */
export function urlText(...protocols: string[]) {
  const allowed = protocols.map((protocol) => `${protocol}//`).join(' or ');
  return z
    .string()
    .refine(
      (text) => URL.canParse(text),
      orEnd(`must be a URL that begins with ${allowed}; encode special characters of a password`),
    )
    .refine((text) => protocols.includes(new URL(text).protocol), orEnd(`must begin with ${allowed}`));
}

const httpUrl = urlText('https:', 'http:')
  .transform((text) => new URL(text))
  .refine(({ username, password }) => username === '' && password === '', 'must not hold a user or password')
  .refine(({ hash }) => hash === '', 'must not hold a fragment (#)');

export const rootUrl = httpUrl.refine(({ search }) => search === '', 'must not hold a query (?)');

/** Where secrets are sent to. */
export const safeUrl = rootUrl.refine(isSafe, 'must be https; plain http is taken only on loopback, since tokens travel with it');

export const authUrl = safeUrl
  .refine(
    ({ pathname }) => !/\/auth\/authentication(\/|$)/i.test(pathname),
    'must not be under /auth/authentication: the service refuses token requests there; give the root, /auth/token is added',
  )
  .refine(
    ({ pathname }) => !/\/auth\/(token|authorize)\/?$/i.test(pathname),
    'must be the root of the authorization server; /auth/authorize and /auth/token are added',
  );

export const httpsUrl = httpUrl.refine(isSafe, 'must be https, unless its host is loopback');

/** Whether nobody on the way to the URL can read what is sent there. */
export function isSafe({ protocol, hostname }: URL): boolean {
  return (
    protocol === 'https:' || hostname === '[::1]' || /^(.+\.)?localhost$/.test(hostname) || /^127(\.\d{1,3}){3}$/.test(hostname)
  );
}

export const host = z
  .string()
  .transform((text) => text.replace(/^\[(.*)\]$/, '$1'))
  .refine((text) => /^[\w.:-]+$/.test(text), 'must be an IP address or a host name, without a port');

export const secret = z.string().transform((text) => new Secret(text));

export const asciiSecret = z
  .string()
  .regex(/^[\x21-\x7e]+$/, 'must be plain ASCII, without spaces')
  .pipe(secret);

export const longSecret = z
  .string()
  .regex(/^[\x21-\x7e]{16,}$/, 'must be at least 16 characters of plain ASCII, without spaces')
  .pipe(secret);

export const encryptionKeys = z.string().transform((text, context) => {
  const keys: EncryptionKey[] = [];
  for (const [index, entry] of text.split(',').entries()) {
    const [, id, encoded] = /^\s*([A-Za-z0-9_-]{1,32}):([A-Za-z0-9+/_-]+={0,2})\s*$/.exec(entry) ?? [];
    const key = Buffer.from(encoded ?? '', 'base64');
    // Entries are named by their number: an id written in the place of a key would show the key.
    if (id === undefined) context.addIssue(`entry ${index + 1} is not keyid:base64`);
    else if (key.length !== 32) context.addIssue(`the key of entry ${index + 1} has ${key.length} bytes instead of 32`);
    else if (keys.some((other) => other.id === id)) context.addIssue(`the key id of entry ${index + 1} is taken already`);
    else keys.push({ id, key: new Secret(key.toString('base64')) });
  }
  return keys;
});

export const cron = z
  .string()
  .refine(
    isCron,
    'must be five fields of cron: minute, hour, day of month, month, day of week (and a sixth in front for seconds, if wanted)',
  );

/** The parser alone would fill in missing fields, and give H another value each time. */
function isCron(text: string): boolean {
  if (![5, 6].includes(text.split(/\s+/).length) || /(^|\s)H/.test(text)) return false;
  return succeeds(() => CronExpressionParser.parse(text, { tz: 'UTC' }).next());
}

export const timezone = z
  .string()
  .refine(
    (name) => /^[A-Za-z]/.test(name) && succeeds(() => Intl.DateTimeFormat('en', { timeZone: name })),
    'must be the name of an IANA time zone',
  );

function succeeds(work: () => unknown): boolean {
  try {
    work();
    return true;
  } catch {
    return false;
  }
}

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];

export const logLevel = z.enum(LOG_LEVELS, `must be one of ${LOG_LEVELS.join(', ')}`);
