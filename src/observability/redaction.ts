import { ERROR_CODES } from '../core/errors.js';
import { scrubRegistered } from './secret-registry.js';

const REDACTED = '[redacted]';

/** Member names that hold a secret, compared without case, `_`, `-` and spaces. */
const SECRET_KEY = /(token|secret|password|passphrase|cookie|authorization|apikey|encryptionkeys?|codeverifier|^code)$/;
/**
 * Error codes, which `code` may hold instead of an authorization code: codes of the operating system; words in capitals, as in Node, undici, Fastify
 * and OpenSSL (EAI_AGAIN, CERT_HAS_EXPIRED); SQLSTATE and Prisma's. A random code of 128 bits looks like one once in 300 million.
 */
const ERROR_CODE = /^(E[A-Z]{2,15}|ERR_[A-Z0-9_]+|[A-Z]+(_[A-Z]+)+|[0-9A-Z]{5})$/;

/** Patterns that identify a secret anywhere in a text: [pattern, replacement]. */
const SECRET_SHAPES: readonly (readonly [RegExp, string])[] = [
  [/eyJ[\w-]{4,}\.[\w-]+(\.[\w-]*)*/g, REDACTED],
  [/\bmuster_[\w-]{43}/g, REDACTED],
  [/\b(bearer|basic)\s+[\w\-.~+/=%]{6,}/gi, `$1 ${REDACTED}`],
  [/(:\/\/[^/\s:@]*):[^/\s@]+@/g, `$1:${REDACTED}@`],
  [
    /\b((?:\w*_?token|client_secret|password|authorization|(?:set-)?cookie)(?:\\?["'])?\s*[=:]\s*(?:\\?["'])?)(?!\[redacted\])[^\s&"'\\,;}\])]+/gi,
    `$1${REDACTED}`,
  ],
  [/([?&](?:code|state)=)[^\s&"'#]+/gi, `$1${REDACTED}`],
  [/(\/connect\/)[^/?\s"'#]+/g, `$1${REDACTED}`],
];

/** Redacts a line of the log by member name, registered value and pattern. */
export function redactLine(line: string): string {
  try {
    return `${JSON.stringify(redact(JSON.parse(line)))}\n`;
  } catch {
    return `${JSON.stringify({ level: 50, msg: 'A log line could not be read back for redaction and was dropped.' })}\n`;
  }
}

/** Removes everything from the text that is registered as a secret or looks like one. */
export function redactText(text: string): string {
  let clean = scrubRegistered(text);
  for (const [shape, replacement] of SECRET_SHAPES) clean = clean.replace(shape, replacement);
  return clean;
}

function redact(value: unknown): unknown {
  if (typeof value === 'string') return redactText(value);
  if (Array.isArray(value)) return value.map(redact);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [redactText(key), isSecretMember(key, member) ? REDACTED : redact(member)]),
  );
}

/** Flags, numbers and nulls do not reveal a secret. */
function isSecretMember(key: string, member: unknown): boolean {
  if (member === null || typeof member === 'boolean' || typeof member === 'number') return false;
  const name = key.toLowerCase().replaceAll(/[_\-\s]/g, '');
  if (!SECRET_KEY.test(name)) return false;
  return !(name === 'code' && typeof member === 'string' && (member in ERROR_CODES || ERROR_CODE.test(member)));
}
