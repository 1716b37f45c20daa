/** Why a record was rejected (docs/verification.md). */
const REASONS: Readonly<Record<string, string>> = {
  not_an_object: 'It is not a JSON object.',
  no_id: 'It has no id.',
  unusable_id: 'Its id is too long, or looks like a key that Muster gives.',
  nul: 'It has a NUL character, which PostgreSQL cannot store.',
  lone_surrogate: 'It has half of a character, which PostgreSQL cannot store.',
  number_out_of_range: 'It has a number that PostgreSQL cannot store.',
};

export function rejectedInWords(reason: string): string {
  return (Object.hasOwn(REASONS, reason) && REASONS[reason]) || `${reason.replaceAll('_', ' ')}.`;
}
