import { z } from 'zod';
import { CRON_RULE, isCron } from '../core/cron.js';
import { readQuietWindows } from '../core/quiet-hours.js';
import { type EncryptionKey, Secret } from '../core/secret.js';
import { AddressFault, readDatabaseAddress } from '../db/connection/database-address.js';
import { type NoProxyRule, readNoProxyEntry } from '../http/proxy/no-proxy.js';
import { readProxyAddress } from '../http/proxy/proxies.js';
import { LOG_FORMATS } from '../observability/logger.js';
import { DESTINATION_KINDS, exportFolder } from '../warehouse/export/destinations/registry.js';
import { EXPORT_FORMATS, EXPORT_LAYOUTS } from '../warehouse/export/export-settings.js';

// These schemas check the texts of environment variables. No message quotes the text: a secret may have landed in the wrong variable.

/** Options of a refinement that ends the checks, so that later steps may rely on it. */
const orEnd = (error: string) => ({ error, abort: true });

/** A text that passes the test, or has the form. */
function checked(isRight: RegExp | ((text: string) => boolean), error: string) {
  return z.string().refine((given) => (isRight instanceof RegExp ? isRight.test(given) : isRight(given)), orEnd(error));
}

export function wholeNumber(min: number, max: number) {
  const isRight = (text: string) => /^\d{1,9}$/.test(text) && Number(text) >= min && Number(text) <= max;
  return checked(isRight, `must be a whole number from ${min} to ${max}`).transform(Number);
}

/** A part of a whole above 0: `0.03` or `3%`. */
export const share = checked(
  (given) => /^\d{1,3}(\.\d{1,6})?%?$/.test(given) && partOf(given) > 0 && partOf(given) <= 1,
  'must be a share like 0.03 or 3%, above 0 and at most 1',
).transform(partOf);

function partOf(text: string): number {
  return text.endsWith('%') ? Number(text.slice(0, -1)) / 100 : Number(text);
}

/** A URL, kept as text because drivers parse it themselves. */
export function urlText(...protocols: string[]) {
  const allowed = protocols.map((protocol) => `${protocol}//`).join(' or ');
  return checked(
    (given) => URL.canParse(given),
    `must be a URL that begins with ${allowed}; encode special characters of a password`,
  ).refine((given) => protocols.includes(new URL(given).protocol), orEnd(`must begin with ${allowed}`));
}

/** An address of PostgreSQL, kept as it was written. */
export const databaseUrl = z.string().superRefine((text, context) => {
  try {
    readDatabaseAddress(text);
  } catch (error) {
    if (!(error instanceof AddressFault)) throw error;
    context.addIssue(error.problem);
  }
});

const httpUrl = urlText('https:', 'http:')
  .transform((text) => new URL(text))
  .refine(({ username, password }) => username === '' && password === '', 'must not hold a user or password')
  .refine(({ hash }) => hash === '', 'must not hold a fragment (#)');

export const rootUrl = httpUrl.refine(({ search }) => search === '', 'must not hold a query (?)');

/** An address that secrets are sent to. */
export const safeUrl = rootUrl.refine(
  isSafe,
  'must be https, because tokens are sent there; plain http is allowed only on loopback',
);

export const authUrl = safeUrl
  .refine(
    ({ pathname }) => !/\/auth\/authentication(\/|$)/i.test(pathname),
    'must not be under /auth/authentication: the service refuses token requests there; give the root, /auth/token is added',
  )
  .refine(
    ({ pathname }) => !/\/auth\/(token|authorize)\/?$/i.test(pathname),
    'must be the root of the authorization server; /auth/authorize and /auth/token are added',
  );

export const issuer = safeUrl.refine(
  ({ pathname }) => !/\/\.well-known\//.test(pathname),
  'must be the issuer itself, as its tokens name it; /.well-known/openid-configuration is added',
);

/** Comma-separated texts. */
export const list = z
  .string()
  .transform((text) => text.split(',').map((entry) => entry.trim()))
  .refine((entries) => entries.every((entry) => entry !== ''), 'must be values with one comma between two');

export const httpsUrl = httpUrl.refine(isSafe, 'must be https, unless its host is loopback');

/** The addresses of folders that exports may go to, as users write them. */
export const EXPORT_FOLDERS = DESTINATION_KINDS.map(({ scheme, folderAddress }) =>
  scheme === undefined ? folderAddress : `\`${folderAddress}\``,
).join(', or ');

/** A folder, local or on S3, without a trailing slash. */
export const exportTarget = checked((given) => exportFolder(given) !== undefined, `must be ${EXPORT_FOLDERS}`).transform(
  (given) => exportFolder(given)!,
);

export const yesOrNo = z.enum(['yes', 'no'], 'must be yes or no').transform((text) => text === 'yes');

export const exportFormat = z.enum(EXPORT_FORMATS, `must be one of ${EXPORT_FORMATS.join(', ')}`);

export const exportLayout = z.enum(EXPORT_LAYOUTS, `must be one of ${EXPORT_LAYOUTS.join(', ')}`);

/** Whether no third party on the way to the URL can read the data sent there. */
export function isSafe({ protocol, hostname }: URL): boolean {
  return (
    protocol === 'https:' || hostname === '[::1]' || /^(.+\.)?localhost$/.test(hostname) || /^127(\.\d{1,3}){3}$/.test(hostname)
  );
}

export const proxy = z.string().transform((text, context) => {
  const address = readProxyAddress(text);
  if (!('problem' in address)) return address;
  context.addIssue(address.problem);
  return z.NEVER;
});

/** NO_PROXY: entries separated by commas or white space. */
export const noProxy = z.string().transform((text, context) => {
  const rules: NoProxyRule[] = [];
  for (const [index, entry] of text
    .split(/[\s,]+/)
    .filter(Boolean)
    .entries()) {
    const rule = readNoProxyEntry(entry);
    if (rule) rules.push(rule);
    else context.addIssue(`entry ${index + 1} must be a host, host:port, .domain, an IP address, a range like 10.0.0.0/8, or *`);
  }
  return rules;
});

/** RFC 6749 (3.3). */
export const scope = checked(
  /^[\x21\x23-\x5b\x5d-\x7e]+( [\x21\x23-\x5b\x5d-\x7e]+)*$/,
  'must be scopes with one space between two',
);

export const signInScope = scope.refine(
  (text) => text.split(' ').includes('openid'),
  'must have openid among its scopes: without it the issuer does not say who signed in',
);

export const host = z
  .string()
  .transform((text) => text.replace(/^\[(.*)\]$/, '$1'))
  .refine((text) => /^[\w.:-]+$/.test(text), 'must be an IP address or a host name, without a port');

export const installation = checked(/^[\w.-]{1,63}$/, 'must have only letters, digits, dots, dashes and underscores, at most 63');

export const secret = z.string().transform((given) => new Secret(given));

export const asciiSecret = checked(/^[\x21-\x7e]+$/, 'must be plain ASCII, without spaces').pipe(secret);

export const longSecret = checked(/^[\x21-\x7e]{16,}$/, 'must be at least 16 characters of plain ASCII, without spaces').pipe(
  secret,
);

const BASE64 = /^[A-Za-z0-9+/_-]+={0,2}$/;

/** Base64 of 32 bytes. */
export const privacyKey = checked(
  (given) => BASE64.test(given) && Buffer.from(given, 'base64').length === 32,
  'must be 32 bytes in base64: make some with `openssl rand -base64 32`',
).pipe(secret);

export const encryptionKeys = z.string().transform((text, context) => {
  const keys: EncryptionKey[] = [];
  for (const [index, entry] of text.split(',').entries()) {
    const [, id, encoded] = /^\s*([A-Za-z0-9_-]{1,32}):([A-Za-z0-9+/_-]+={0,2})\s*$/.exec(entry) ?? [];
    const bytes = Buffer.from(encoded ?? '', 'base64');
    // Messages name entries by number, because a key may be written where the id belongs.
    if (id === undefined) context.addIssue(`entry ${index + 1} is not keyid:base64`);
    else if (bytes.length !== 32) context.addIssue(`the key of entry ${index + 1} has ${bytes.length} bytes instead of 32`);
    else if (keys.some((other) => other.id === id)) context.addIssue(`the key id of entry ${index + 1} is taken already`);
    else keys.push({ id, key: new Secret(bytes.toString('base64')) });
  }
  return keys;
});

/** The prefix of an Ed25519 key in PKCS#8 (RFC 8410), in base64. */
const PKCS8_PREFIX = 'MC4CAQAwBQYDK2VwBCIEI';

export const signingKey = z
  .string()
  .regex(/^[A-Za-z0-9+/]+={0,2}$/, orEnd('must be base64'))
  .transform((text, context) => {
    const bytes = Buffer.from(text, 'base64');
    const isWhole = bytes.length === 48 && text.startsWith(PKCS8_PREFIX);
    if (bytes.length !== 32 && !isWhole) context.addIssue('must be the 32 bytes of an Ed25519 key, or its PKCS#8, in base64');
    return new Secret(bytes.subarray(-32).toString('base64'));
  });

export const cron = checked(isCron, `must be ${CRON_RULE}`);

export const timezone = checked(
  (name) => /^[A-Za-z]/.test(name) && succeeds(() => Intl.DateTimeFormat('en', { timeZone: name })),
  'must be the name of an IANA time zone',
);

/** Windows of local time, such as 07:00-09:00,12:00-13:00. */
export const quietHours = z.string().transform((text, context) => {
  const read = readQuietWindows(text);
  if ('windows' in read) return read.windows;
  for (const problem of read.problems) context.addIssue(problem);
  return z.NEVER;
});

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

export const logFormat = z.enum(LOG_FORMATS, `must be one of ${LOG_FORMATS.join(', ')}`);
