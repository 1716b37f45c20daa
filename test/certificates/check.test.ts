import { CompactSign, importJWK } from 'jose';
import { beforeAll, expect, test } from 'vitest';
import { digestOf, type Signer, signerOf, signerOfSeed } from '../../src/certificates/certificate.js';
import { checkCertificates } from '../../src/certificates/check.js';
import { Secret } from '../../src/core/secret.js';
import { chainOf, changedTexts, someSigner, statement } from './certificate-fixture.js';

let signer: Signer;
let stranger: Signer;
beforeAll(async () => {
  [signer, stranger] = [await someSigner(), await someSigner()];
});

/** What does not hold of texts that stand in lines of a file. */
async function problems(texts: readonly string[], signers = [signer]): Promise<string[]> {
  const given = texts.map((jws, n) => ({ where: `line ${n + 1}`, jws }));
  const { findings } = await checkCertificates(given, { keys: signers.map(({ publicKey }) => publicKey) });
  return findings.map(({ where, problem }) => `${where} ${problem}`);
}

test('a certificate holds, and does not with any byte of it changed', async () => {
  const [jws] = await chainOf(signer, 1);
  expect(await problems([jws!])).toEqual([]);
  let changed = 0;
  for (const text of changedTexts(jws!)) {
    changed++;
    expect(await problems([text]), text).toHaveLength(1);
  }
  expect(changed).toBeGreaterThan(2 * jws!.length - 1);
  for (const text of [`${jws!} `, `${jws!}=`, `${jws!}.`, `\n${jws!}`, `${jws!}\r`, '', '..', 'e30.e30.e30', jws!.slice(0, -1)])
    expect(await problems([text]), text).toHaveLength(1);
});

test('it holds by its own key alone', async () => {
  const [jws] = await chainOf(signer, 1);
  expect(await problems([jws!], [stranger])).toEqual([
    `line 1 is signed by the key ${signer.publicKey.kid}, which is not among the keys given`,
  ]);
  expect(await problems([jws!], [stranger, signer])).toEqual([]);
  const asOurs = { ...stranger, publicKey: { ...stranger.publicKey, kid: signer.publicKey.kid } };
  expect(await problems([jws!], [asOurs])).toEqual([expect.stringContaining('does not hold')]);
});

test('what is signed by the key for another purpose is no certificate', async () => {
  const seed = Buffer.alloc(32, 7);
  const { publicKey } = await signerOfSeed(seed);
  const key = await importJWK({ ...publicKey, d: seed.toString('base64url') }, 'EdDSA');
  const sign = (header: object, payload: string) =>
    new CompactSign(Buffer.from(payload)).setProtectedHeader({ alg: 'EdDSA', kid: publicKey.kid, ...header }).sign(key);
  const text = JSON.stringify(statement());
  const check = (jws: string) => problems([jws], [{ publicKey } as Signer]);
  expect(await check(await sign({ typ: 'muster-certificate+json' }, text))).toEqual([]);
  expect(await check(await sign({ typ: 'JWT' }, text))).toEqual([expect.stringContaining('is no certificate')]);
  expect(await check(await sign({}, text))).toEqual([expect.stringContaining('is no certificate')]);
  expect(await check(await sign({ typ: 'muster-certificate+json' }, '{}'))).toEqual([expect.stringContaining('lacks')]);
  expect(await check(await sign({ typ: 'muster-certificate+json' }, 'text'))).toEqual([
    expect.stringContaining('cannot be read'),
  ]);
});

test('certificates of a list follow each other: in any order and more than once, with nothing missing between two', async () => {
  const chain = await chainOf(signer, 5);
  expect(await problems(chain)).toEqual([]);
  expect(await problems([...chain.toReversed(), chain[2]!])).toEqual([]);
  expect(await problems(chain.slice(2))).toEqual([]);
  expect(await problems([chain[0]!, chain[1]!, chain[3]!])).toEqual([
    'line 3 does not follow line 2: one between them is missing, or does not hold',
  ]);
  const other = await signer.sign(statement({ resource: 'departments' }));
  expect(await problems([...chain, other])).toEqual([]);
});

test('where a chain begins in its middle it says so, and of which list, and of no other', async () => {
  const middlesOf = async (texts: readonly string[]) => {
    const given = texts.map((jws, n) => ({ where: `line ${n + 1}`, jws }));
    return (await checkCertificates(given, { keys: [signer.publicKey] })).middles.map(({ where }) => where);
  };
  const chain = await chainOf(signer, 4);
  const other = await signer.sign(statement({ resource: 'departments' }));
  expect(await middlesOf([...chain, other])).toEqual([]);
  expect(await middlesOf([other, ...chain.slice(2)])).toEqual(['line 2']);
  expect(await middlesOf([chain[3]!, chain[2]!])).toEqual(['line 2']);
  // One that is missing between two is a fault, and no beginning.
  expect(await middlesOf([chain[0]!, chain[2]!])).toEqual([]);
});

test('a certificate of an earlier version, which says nothing of holds, holds', async () => {
  const { held: _, ...earlier } = statement();
  expect(await problems([await signer.sign(earlier)])).toEqual([]);
});

test('a signed manifest holds with the certificates of its lists, and not with those of others', async () => {
  const [certificate] = await chainOf(signer, 1);
  const { environment, company_id, resource } = statement();
  const manifest = (certificates: readonly string[], more: object = {}) => {
    const list = { environment, company_id, verified_at: null, certificates };
    return signer.signManifest(JSON.stringify({ resource, rows: 60, sha256: 'b'.repeat(64), lists: [list], ...more }));
  };
  const outcome = await checkCertificates([{ where: 'it', jws: await manifest([certificate!]) }], { keys: [signer.publicKey] });
  expect(outcome).toMatchObject({ signed: [], findings: [], middles: [], manifests: [{ manifest: { rows: 60 } }] });
  expect(await problems([await manifest([certificate!], { resource: 'departments' })])).toEqual([
    expect.stringMatching(/^line 1 has for a certificate of production \S+ departments one of something else$/),
  ]);
  expect(await problems([await manifest([await stranger.sign(statement())])])).toEqual([
    expect.stringMatching(
      /^line 1 has a certificate of production \S+ employees that is signed by the key \S+, which is not among/,
    ),
  ]);
  expect(await problems([await manifest([], { sha256: 'no' })])).toEqual([expect.stringContaining('lacks')]);
  const jws = await manifest([certificate!]);
  for (const text of [...changedTexts(jws)].slice(0, 200)) expect(await problems([text]), text).toHaveLength(1);
});

test('of two that follow the same one, and of one whose part of the feed begins elsewhere, it says so', async () => {
  const chain = await chainOf(signer, 2);
  const fork = await signer.sign(
    statement({ verified_at: '2026-11-12T02:00:00.000Z', feed: { after: 10, through: 30 }, previous: digestOf(chain[0]!) }),
  );
  expect(await problems([...chain, fork])).toEqual([
    'line 3 follows the same certificate as line 2: of two, one was made in a copy',
  ]);
  const gap = await signer.sign(
    statement({ verified_at: '2026-11-12T02:00:00.000Z', feed: { after: 25, through: 30 }, previous: digestOf(chain[1]!) }),
  );
  expect(await problems([...chain, gap])).toEqual(['line 3 begins at 25 in the feed, but the one before it ends at 20']);
});

test('the key is the one that is set, or follows from the first encryption key', async () => {
  const key = (byte: number) => new Secret(Buffer.alloc(32, byte).toString('base64'));
  const kid = async (set: Secret | undefined, ...keys: Secret[]) =>
    (
      await signerOf(
        set,
        keys.map((each, n) => ({ id: `k${n}`, key: each })),
      )
    ).publicKey.kid;
  const own = async (byte: number) => (await signerOfSeed(Buffer.alloc(32, byte))).publicKey.kid;
  expect(await kid(key(2), key(1))).toBe(await own(2));
  const derived = await kid(undefined, key(1));
  expect(await kid(undefined, key(1), key(3))).toBe(derived);
  expect(await kid(undefined, key(3), key(1))).not.toBe(derived);
  expect(derived).not.toBe(await own(1));
});
