import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type PassFindings, verify } from '../../src/walks/verification.js';

const count = fc.nat(6);
const digest = fc.constantFrom('a', 'b');
const findings: fc.Arbitrary<PassFindings> = fc.record(
  {
    linkage: fc.constantFrom('join', 'token-chain', 'none'),
    pass: fc.integer({ min: 1, max: 4 }),
    distinct: count,
    duplicates: count,
    rejected: fc.nat(1),
    total: count,
    totalConstant: fc.boolean(),
    contradicted: fc.boolean(),
    digest,
    previousDigest: digest,
  },
  { requiredKeys: ['linkage', 'pass', 'distinct', 'duplicates', 'rejected', 'totalConstant', 'digest'] },
);

const always = (property: (found: PassFindings) => void) => fc.assert(fc.property(findings, property), { numRuns: 3_000 });

test('nothing is verified that has a flaw', () => {
  always((found) => {
    if (verify(found).kind !== 'verified') return;
    expect(found.rejected).toBe(0);
    expect(found.contradicted ?? false).toBe(false);
    expect(found.totalConstant).toBe(true);
    if (found.total !== undefined) expect(found.distinct).toBe(found.total);
    if (found.linkage === 'none') expect(found.previousDigest).toBe(found.digest);
  });
});

test('the proof is the one that the pages give', () => {
  always((found) => {
    const verdict = verify(found);
    if (verdict.kind === 'verified') {
      expect(verdict.proof).toBe({ join: 'join', 'token-chain': 'token-chain', none: 'two-pass' }[found.linkage]);
    }
  });
});

test('whatever is found, the third pass is the last', () => {
  always((found) => {
    expect(found.pass >= 3 && verify(found).kind === 'another-pass').toBe(false);
  });
});

test('what another pass cannot mend ends the walk at once', () => {
  always((found) => {
    const reason = found.rejected > 0 ? 'rejected_records' : found.contradicted ? 'contradicting_envelope' : undefined;
    expect(reason === undefined ? undefined : verify(found)).toEqual(reason && { kind: 'unverified', reason });
  });
});

const clean: PassFindings = {
  linkage: 'join',
  pass: 3,
  distinct: 5,
  duplicates: 0,
  rejected: 0,
  total: 5,
  totalConstant: true,
  digest: 'a',
};

test.each<[Partial<PassFindings>, object]>([
  [{}, { kind: 'verified', proof: 'join' }],
  [
    { pass: 1, total: 6 },
    { kind: 'another-pass', doubt: 'total_mismatch' },
  ],
  [{ total: 6 }, { kind: 'unverified', reason: 'total_mismatch' }],
  [
    { total: 6, duplicates: 1 },
    { kind: 'unverified', reason: 'duplicate_ids' },
  ],
  [{ totalConstant: false }, { kind: 'unverified', reason: 'total_changed' }],
  [
    { linkage: 'none', pass: 1 },
    { kind: 'another-pass', doubt: 'passes_disagree' },
  ],
  [
    { linkage: 'none', previousDigest: 'b' },
    { kind: 'unverified', reason: 'passes_disagree' },
  ],
  [
    { linkage: 'none', previousDigest: 'a' },
    { kind: 'verified', proof: 'two-pass' },
  ],
])('%o', (change, verdict) => {
  expect(verify({ ...clean, ...change })).toEqual(verdict);
});
