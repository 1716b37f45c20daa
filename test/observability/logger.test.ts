import { constants } from 'node:os';
import { describe, expect, test } from 'vitest';
import { MusterError } from '../../src/core/errors.js';
import { errorText } from '../../src/observability/error-view.js';
import { createLogger } from '../../src/observability/logger.js';
import { registerPasswordOf, registerSecret } from '../../src/observability/secret-registry.js';

/** A value that no key name and no shape gives away: only the registry can catch it. */
const CANARY = 'q7Zr!canary+4b/9x$WmK';
registerSecret(CANARY);

/** Of the operating system, Node, OpenSSL, undici, Fastify, PostgreSQL and Prisma. */
const ERROR_CODES_OF_OTHERS = [
  ...Object.keys(constants.errno),
  'EAI_AGAIN',
  'ENOTFOUND',
  'ABORT_ERR',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'HPE_INVALID_CONSTANT',
  'UND_ERR_SOCKET',
  'FST_ERR_CTP_BODY_TOO_LARGE',
  'CERT_HAS_EXPIRED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'HOSTNAME_MISMATCH',
  '40001',
  '57P01',
  '53100',
  'P2010',
];

function logged(write: (logger: ReturnType<typeof createLogger>) => void): string {
  const lines: string[] = [];
  write(createLogger({ level: 'trace', destination: { write: (line) => void lines.push(line) } }));
  expect(lines).toHaveLength(1);
  return lines[0] ?? '';
}

describe('by registered value', () => {
  const places: Record<string, (logger: ReturnType<typeof createLogger>) => void> = {
    message: (log) => log.info(`answered ${CANARY} at once`),
    'formatted message': (log) => log.info('answered %s', CANARY),
    root: (log) => log.info({ note: CANARY }),
    'depth 3': (log) => log.info({ a: { b: [{ c: CANARY }] } }),
    'member name': (log) => log.info({ a: { [CANARY]: 1 } }),
    'child binding': (log) => log.child({ note: CANARY }).info('x'),
    'error message': (log) => log.error({ err: new Error(`bad ${CANARY}`) }),
    'bare error': (log) => log.error(new Error(`bad ${CANARY}`)),
    cause: (log) => log.error({ err: new Error('outer', { cause: new Error('middle', { cause: new Error(CANARY) }) }) }),
    'aggregate error': (log) => log.error({ error: new AggregateError([new Error(CANARY)], 'many') }),
    'error details': (log) => log.error({ err: new MusterError('service_error', 'x', { details: { hint: CANARY } }) }),
    'encoded in a URL': (log) => log.info({ url: `https://x.test/a?b=${encodeURIComponent(CANARY)}&c=1` }),
    'glued to other text': (log) => log.info(`<<${CANARY}${CANARY}>>`),
    'embedded JSON': (log) => log.info(JSON.stringify({ x: CANARY })),
  };
  test.each(Object.entries(places))('%s', (_place, write) => {
    const line = logged(write);
    expect(line).toContain('[redacted]');
    expect(line).not.toContain(CANARY);
    expect(line).not.toContain(encodeURIComponent(CANARY));
    expect(line).not.toContain('canary');
    expect(() => JSON.parse(line)).not.toThrow();
  });

  test('a value that begins like a shorter one disappears whole', () => {
    registerSecret('prefix-secret');
    registerSecret('prefix-secret-and-its-tail');
    expect(logged((log) => log.info('prefix-secret-and-its-tail'))).not.toContain('tail');
  });

  test('lasting values outlive any number of passing ones, and memory is bounded', () => {
    registerSecret('lasting-value-1', { lasting: true });
    registerSecret('first-passing-value');
    for (let i = 0; i < 10_001; i++) registerSecret(`passing-value-${i}-end`);
    expect(logged((log) => log.info('lasting-value-1'))).toContain('[redacted]');
    expect(logged((log) => log.info('passing-value-10000-end'))).toContain('[redacted]');
    expect(logged((log) => log.info('first-passing-value'))).toContain('first-passing-value');
  });
});

describe('by member name', () => {
  const plain = 'unregistered-opaque';
  const names = [
    'refresh_token',
    'Refresh_Token',
    'refreshToken',
    'REFRESH-TOKEN',
    'access_token',
    'client_secret',
    'clientSecret',
    'Authorization',
    'code',
    'password',
    'cookie',
    'Set-Cookie',
    'x-csrf-token',
    'adminToken',
    'MUSTER_ENCRYPTION_KEYS',
  ];
  test.each(names)('%s', (name) => {
    for (const object of [
      { [name]: plain },
      { a: { b: { c: { [name]: plain } } } },
      { a: [{ [name]: [plain] }] },
      { [name]: { value: plain } },
    ]) {
      expect(logged((log) => log.info(object))).not.toContain(plain);
    }
    expect(logged((log) => log.error({ err: Object.assign(new Error('x'), { [name]: plain }) }))).not.toContain(plain);
    expect(logged((log) => log.child({ [name]: plain }).info('x'))).not.toContain(plain);
  });

  test('an error code is no authorization code', () => {
    expect(JSON.parse(logged((log) => log.error({ err: new MusterError('token_busy', 'x') }))).err.code).toBe('token_busy');
    for (const code of ERROR_CODES_OF_OTHERS) expect(JSON.parse(logged((log) => log.info({ code }))).code).toBe(code);
  });

  test('an authorization code is no error code', () => {
    for (const code of [
      'SplxlOBeZQQYbYS6WxSbIA',
      'a1b2c3d4',
      'ABCDEF0123456789',
      'E4F0',
      '4/0AX4XfWh_AB',
      'ABCD_EF12GH',
      'answered',
      '_',
      'E_',
    ])
      expect(JSON.parse(logged((log) => log.info({ code }))).code, code).toBe('[redacted]');
  });
});

test('an error of a database connection is logged without the connection', () => {
  const client = { processID: 71, secretKey: 1634248814 };
  const cause = Object.assign(new Error('terminated'), { code: '57P01', client });
  const middle = Object.assign(new Error('middle', { cause }), { client });
  for (const error of [cause, new Error('outer', { cause: middle }), new AggregateError(['a text', middle], 'outer')]) {
    const line = logged((log) => log.warn({ err: error }));
    expect(line).not.toContain(String(client.secretKey));
    expect(line).toContain('terminated');
    expect(line).toContain('57P01');
    expect(JSON.parse(line).err).toMatchObject({
      type: error.constructor.name,
      message: error === cause ? 'terminated' : expect.stringContaining('outer'),
    });
  }
  expect(JSON.parse(logged((log) => log.warn({ err: 'only a text' }))).err).toBe('only a text');
});

describe('by a list of members', () => {
  const plain = 'unregistered-opaque';
  /** As ioredis makes it of a refused AUTH. */
  const refused = () =>
    Object.assign(new Error('WRONGPASS'), { name: 'ReplyError', command: { name: 'auth', args: ['muster', plain] } });

  test.each<[string, (log: ReturnType<typeof createLogger>) => void]>([
    ['an error', (log) => log.warn({ err: refused() })],
    ['a bare error', (log) => log.warn(refused())],
    ['an error under another name', (log) => log.warn({ reason: refused() })],
    ['a cause', (log) => log.warn({ err: new MusterError('queue_unavailable', 'x', { cause: refused() }) })],
    ['a nested error', (log) => log.warn({ err: new AggregateError([refused()], 'many') })],
    ['a cause that is no error', (log) => log.warn({ err: new Error('WRONGPASS', { cause: { args: [plain] } }) })],
    ['an error of a child', (log) => log.child({ err: refused() }).warn('WRONGPASS')],
  ])('%s', (_place, write) => {
    const line = logged(write);
    expect(line).toContain('WRONGPASS');
    expect(line).not.toContain(plain);
  });

  test('an error for a person is shown by the same measure, with its causes', () => {
    const text = errorText(new Error('outer', { cause: refused() }));
    expect(text).toMatch(/^Error: outer\n[^]*Caused by: .*WRONGPASS/);
    expect(text).not.toContain(plain);
  });

  test('causes in a circle end', () => {
    const error = refused();
    error.cause = error;
    expect(logged((log) => log.warn({ err: error }))).toContain('WRONGPASS');
    expect(errorText(error)).toContain('WRONGPASS');
  });
});

describe('the password of an address', () => {
  const password = 'pw /with+signs@7f';
  test.each([
    `redis://:${encodeURIComponent(password)}@127.0.0.1:6379/0`,
    `postgres://muster:${encodeURIComponent(password)}@db/muster?sslmode=require`,
    `postgres://db/muster?user=muster&password=${encodeURIComponent(password)}`,
  ])('%s', (url) => {
    registerPasswordOf(url);
    for (const text of [password, encodeURIComponent(password), JSON.stringify({ password: [password] }), url])
      expect(logged((log) => log.info({ note: `<${text}>` }))).not.toMatch(/pw.+7f/);
  });

  test('that is no right encoding, or none at all', () => {
    for (const url of ['redis://127.0.0.1', 'redis://:abc%zz-987654@127.0.0.1']) registerPasswordOf(url);
    expect(logged((log) => log.info('<abc%zz-987654>'))).toContain('<[redacted]>');
  });
});

describe('by shape', () => {
  const jwt = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl';
  test.each([
    [`got ${jwt}.`, jwt],
    ['Bearer abcdef123456', 'abcdef123456'],
    ['authorization: bearer abcdef123456', 'abcdef123456'],
    ['GET /oauth/callback?code=hush-hush&state=shush-shush', 'hush'],
    ['POST refresh_token=hush-hush&client_id=x', 'hush'],
    ['body {"access_token":"hush-hush","expires_in":1}', 'hush'],
    ['body {\\"refresh_token\\": \\"hush-hush\\"}', 'hush'],
    ['postgres://muster:hush-hush@db/muster', 'hush'],
    ['302 /connect/hush-hush', 'hush'],
    [`token muster_${'hush-'.repeat(8)}abc, and more`, 'hush'],
  ])('%s', (text, secret) => {
    expect(logged((log) => log.info(text))).not.toContain(secret);
    expect(logged((log) => log.error(new Error(text)))).not.toContain(secret);
  });

  test('ordinary text stays as it is', () => {
    const text = 'company 0f8fad5b-d9cb-469f-a165-70867728950e (test): page 3 of employees took 12 ms; code 40001';
    expect(JSON.parse(logged((log) => log.info({ records: 3 }, text)))).toMatchObject({ msg: text, records: 3 });
  });
});
