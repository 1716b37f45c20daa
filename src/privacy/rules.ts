import type { PrivacyKey } from './privacy-key.js';

export const RULE_KINDS = ['drop', 'mask', 'hash'] as const;
export type RuleKind = (typeof RULE_KINDS)[number];

/** A catalogue entry's `privacy`: the rule for the member at each dot path. */
export type PrivacyRules = Readonly<Record<string, RuleKind>>;

/** A name in the paths of rules. Either a path ends here, or paths continue within the member's value. */
export type RuleEdge = { readonly name: Buffer } & (
  | { readonly kind: RuleKind; readonly path: string; readonly next?: undefined }
  | { readonly kind?: undefined; readonly next: readonly RuleEdge[] }
);

/** The rules of one list, ready to be applied. */
export interface Privacy {
  readonly rules: PrivacyRules;
  readonly edges: readonly RuleEdge[];
  /** Needed where a rule hashes. */
  readonly key: PrivacyKey | undefined;
}

/** Undefined where there is no rule: then no record is read for them. */
export function privacyOf(rules: PrivacyRules | undefined, key: PrivacyKey | undefined): Privacy | undefined {
  const entries = Object.entries(rules ?? {});
  if (!rules || entries.length === 0) return undefined;
  return { rules, edges: edgesOf(entries.map(([path, kind]) => ({ path, kind, rest: path.split('.') }))), key };
}

export function needsKey(rules: PrivacyRules | undefined): boolean {
  return Object.values(rules ?? {}).includes('hash');
}

/** The rules, and the key of hashes: stored texts that differ in these follow different rules. */
export function identityOf({ rules, key }: Privacy): { readonly rules: PrivacyRules; readonly keyId?: string } {
  return { rules, ...(needsKey(rules) && key && { keyId: key.id }) };
}

interface PathLeft {
  readonly path: string;
  readonly kind: RuleKind;
  /** The parts of the path that are still to be found. */
  readonly rest: readonly string[];
}

/**
 * A dot in a path may separate two members or be part of a name: `a.b` is the member `b` of `a`, and also a member called `a.b`. Redacting both is better
 * than missing the one that was meant.
 */
function edgesOf(paths: readonly PathLeft[]): RuleEdge[] {
  const byName = new Map<string, PathLeft[]>();
  for (const each of paths) {
    for (let n = 1; n <= each.rest.length; n += 1) {
      const name = each.rest.slice(0, n).join('.');
      byName.set(name, [...(byName.get(name) ?? []), { ...each, rest: each.rest.slice(n) }]);
    }
  }
  return [...byName].map(([text, found]) => {
    const name = Buffer.from(text);
    const end = found.find(({ rest }) => rest.length === 0);
    return end ? { name, kind: end.kind, path: end.path } : { name, next: edgesOf(found) };
  });
}
