import fc from 'fast-check';
import type { PrivacyRules, RuleKind } from '../../src/privacy/rules.js';

/** JSON as it is written: every token with the white space around it. */
export type Written =
  | { readonly kind: 'scalar'; readonly text: string }
  | { readonly kind: 'array'; readonly items: readonly { readonly gap: string; readonly value: Written }[]; readonly end: string }
  | { readonly kind: 'object'; readonly members: readonly WrittenMember[]; readonly end: string };

export interface WrittenMember {
  readonly gap: string;
  readonly separator: string;
  readonly name: string;
  readonly key: string;
  readonly colon: string;
  readonly value: Written;
}

export const NAMES = ['a', 'b', 'c', 'a.b', 'é', 'b"', '__proto__'];
const GAP = fc.constantFrom('', '', ' ', '\n\t', '\r\n  ');
const escaped = (text: string) =>
  `"${[...Array(text.length).keys()].map((n) => `\\u${text.charCodeAt(n).toString(16).padStart(4, '0')}`).join('')}"`;
const KEY = fc
  .tuple(fc.constantFrom(...NAMES), fc.integer({ min: 0, max: 4 }))
  .map(([name, n]) => ({ name, key: n === 0 ? escaped(name) : JSON.stringify(name) }));

const STRING = fc
  .tuple(fc.string({ unit: 'grapheme', maxLength: 8 }), fc.boolean())
  .map(([text, isEscaped]) => (isEscaped ? escaped(text) : JSON.stringify(text)));
const NUMBER = fc.constantFrom('0', '-0', '7', '-1.50', '10.00', '1e5', '-2.5E-03', '12345678901234567890.123', '1e400');
const SCALAR = fc
  .oneof(STRING, STRING, NUMBER, fc.constantFrom('true', 'false', 'null', '"\\ud800"', '"\\/\\n"', '"\\ud83d\\ude00"'))
  .map((text): Written => ({ kind: 'scalar', text }));

/** Any JSON, with members that stand there twice, names and texts in escapes, and numbers that no double holds. */
export const WRITTEN: fc.Arbitrary<Written> = fc.letrec<{ value: Written }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 5, depthSize: 'small' },
    SCALAR,
    fc
      .tuple(fc.array(fc.record({ gap: GAP, value: tie('value') }), { maxLength: 4 }), GAP)
      .map(([items, end]): Written => ({ kind: 'array', items, end })),
    fc.tuple(fc.array(fc.tuple(KEY, GAP, GAP, GAP, tie('value')), { maxLength: 6 }), GAP).map(([members, end]): Written => {
      const written = members.map(([key, gap, before, colon, value]) => ({ ...key, gap, separator: `${before},`, colon, value }));
      return { kind: 'object', members: written, end };
    }),
  ),
})).value;

/** Paths of which none is within another. */
export const RULES: fc.Arbitrary<PrivacyRules> = fc
  .array(
    fc.tuple(
      fc.array(fc.constantFrom('a', 'b', 'c', 'é', 'b"'), { minLength: 1, maxLength: 3 }).map((parts) => parts.join('.')),
      fc.constantFrom<RuleKind>('drop', 'mask', 'hash'),
    ),
    { minLength: 1, maxLength: 4 },
  )
  .map((rules) => {
    const apart = rules.filter(
      ([path], n) => !rules.some(([other], m) => m !== n && (path.startsWith(`${other}.`) || (path === other && m < n))),
    );
    return Object.fromEntries(apart) as PrivacyRules;
  })
  .filter((rules) => Object.keys(rules).length > 0);

/** The text of what is written. `treated` says what becomes of a member, by the names that lead to it: kept as it is without. */
export function textOf(value: Written, treated: Redacted = () => undefined, path = ''): string {
  switch (value.kind) {
    case 'scalar':
      return value.text;
    case 'array': {
      const items = value.items.map((item) => item.gap + textOf(item.value, treated, path));
      return `[${items.join(',')}${value.end}]`;
    }
    case 'object': {
      const first = value.members[0]?.gap ?? '';
      let text = '';
      for (const member of value.members) {
        const here = path === '' ? member.name : `${path}.${member.name}`;
        const by = treated(here);
        if (by === 'drop') continue;
        const inner = by ? leavesOf(member.value, by) : textOf(member.value, treated, here);
        text += `${text === '' ? first : member.separator + member.gap}${member.key}${member.colon}:${inner}`;
      }
      return `{${text === '' ? first : text}${value.end}}`;
    }
  }
}

export type Redacted = (path: string) => 'drop' | ((scalar: string) => string) | undefined;

/** Every scalar of a value. */
function leavesOf(value: Written, by: (scalar: string) => string): string {
  switch (value.kind) {
    case 'scalar':
      return by(value.text);
    case 'array':
      return `[${value.items.map(({ gap, value: item }) => gap + leavesOf(item, by)).join(',')}${value.end}]`;
    case 'object': {
      const members = value.members.map(
        ({ gap, separator, key, colon, value: member }, n) =>
          `${n > 0 ? separator : ''}${gap}${key}${colon}:${leavesOf(member, by)}`,
      );
      return `{${members.join('')}${value.end}}`;
    }
  }
}
