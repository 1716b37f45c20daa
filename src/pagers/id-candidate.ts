/**
 * A candidate for a record's id: a member or a dot path as it is written, or several of them together as a JSON array, `["userId","startDate"]`. As this text it is
 * compared with other catalogues, and kept with the list and with marks.
 */
export function idCandidate(members: string | readonly string[]): string {
  return typeof members === 'string' ? members : JSON.stringify(members);
}

/** The members, or dot paths, whose values together are the id. */
export function idParts(candidate: string): readonly string[] {
  return candidate.startsWith('[') ? (JSON.parse(candidate) as string[]) : [candidate];
}

/** The deepest dot path: each further name doubles the ways in which members whose names hold dots may stand within each other. */
const MOST_NAMES = 8;

/** Why no record could be known by this candidate of a catalogue entry; undefined where nothing is wrong with it. */
export function faultOfCandidate(written: unknown): string | undefined {
  if (typeof written === 'string') return faultOfMember(written);
  if (!Array.isArray(written))
    return 'must be the name of a record member, a dot path, or a list of members that are the id together';
  if (written.length < 2) return 'must list two members or more, which are the id together; write a single one without brackets';
  const twice = written.find((member, n) => written.indexOf(member) !== n);
  if (typeof twice === 'string') return `must not list ${twice} twice`;
  for (const member of written) {
    const fault = typeof member === 'string' ? faultOfMember(member) : 'must list names of record members or dot paths';
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function faultOfMember(member: string): string | undefined {
  const names = member.split('.');
  if (member.trim() === '') return 'must not be empty: write the name of a record member';
  if (names.some((name) => name.trim() === ''))
    return `must not be ${member}, a dot path with an empty part: write the names of members with one dot between two`;
  if (names.length > MOST_NAMES) return `must not be ${member}: a dot path has at most ${MOST_NAMES} names`;
  if (member.startsWith('['))
    return `must not be ${member}: no name begins with [; write several members as a list, without quotes around it`;
  if (names.includes('__proto__')) return 'must not hold the name __proto__';
  // The name is kept in the database, where neither can stand.
  if (/[\0\p{Surrogate}]/u.test(member)) return 'must not hold NUL or half of a surrogate pair';
  return undefined;
}
