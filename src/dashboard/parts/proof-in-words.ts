/** Proofs in plain words (docs/verification.md). */
const PROOFS: Readonly<Record<string, string>> = {
  join: 'Complete: every page overlapped with the one before it, and the distinct records are as many as the service says.',
  'two-pass': 'Complete: two readings in a row brought the same records, and as many as the service says.',
  'token-chain': 'Complete: every page was followed to the one that it named, to the end of the list.',
};

export function proofInWords(proof: string | undefined): string {
  return (proof !== undefined && PROOFS[proof]) || 'Complete: it was proved that every record was received.';
}

const NAMES: Readonly<Record<string, string>> = {
  join: 'pages that overlap',
  'two-pass': 'two equal readings',
  'token-chain': 'unbroken chain of pages',
};

/** A proof in a few words, for a table. */
export function proofName(proof: string): string {
  return NAMES[proof] ?? proof;
}

const ASSUMED_ALWAYS = [
  'The service tells the truth. That it does, no certificate can say.',
  'It is a proof of what the person who authorized may see, and that person’s rights did not shrink during the grant.',
];

/** The further assumptions of each proof, in plain words (docs/verification.md). */
const ASSUMED: Readonly<Record<string, readonly string[]>> = {
  join: ['The service keeps the order of its records while they are read. Each page was checked against the one before it.'],
  'two-pass': ['No record left and came back within the two readings. The total that the service names is right.'],
  'token-chain': ['The links of the service from page to page leave out no record that is there throughout.'],
};

export function assumptionsOf(proof: string): readonly string[] {
  return [...(ASSUMED[proof] ?? []), ...ASSUMED_ALWAYS];
}

/** Why a walk that ended is not proved complete, and what to do (docs/verification.md). */
const UNVERIFIED: Readonly<Record<string, string>> = {
  rejected_records: 'Some records could not be kept. Have the service mend them: the next walk takes them in.',
  duplicate_ids: 'Several records have one id. See whether another member is the id (`id` in the catalogue).',
  total_mismatch:
    'Another number of records was received than the service says or has places for. If it lasts, the service counts wrongly, or orders its records by a value that several share.',
  total_changed: 'The list changed its length while it was read. Nothing at first; a larger `size` makes reading shorter.',
  passes_disagree: 'The list has no stable order, and no two readings agreed. Nothing at first; a larger `size` helps.',
  contradicting_envelope: 'A page contradicted its own totals. Check `pager` and `envelope` in the catalogue.',
  never_ended: 'The list grew or moved as fast as it was read. Raise `size`; check the names of the paging parameters.',
  end_unproved: 'The only page could have had another after it. Check `fields.next` and `fields.total`, or raise `size` by one.',
  end_contradicted: 'What stands around the records speaks of more of them, or of a failure.',
  constants_lost: 'The links of this list lack constants of its entry.',
  first_page_repeated: 'The first page came twice. Check `pager.first`: the service may number its pages from 1.',
  parent_refused: 'A parent of this list left during the walk. Nothing to do.',
  unavailable: 'The company does not have this list, as the service says. Nothing to do: it is asked for again with every run.',
  parents_unverified: 'Its parent list is not proved complete: see the reason there.',
};

export function unverifiedInWords(reason: string): string {
  return UNVERIFIED[reason] ?? `Not proved complete (${reason}).`;
}
