/** The parameters that the sentence of a refusal asks for. */
export interface Wanted {
  /** Names that the sentence mentions. */
  readonly names: readonly string[];
  /** Parameters for which the sentence names the only value. */
  readonly constants: Readonly<Record<string, string>>;
}

const NAME = String.raw`["'\x60]?([$@]?[A-Za-z_][\w.$-]{0,40}(?:\[\w+\])?)["'\x60]?`;
/** Sentences that name a parameter: "take is missing", "missing required parameter: limit", "parameter 'page' must …". */
const NAMING = [
  new RegExp(String.raw`${NAME} (?:is|was) (?:missing|required|mandatory|not (?:given|specified|provided|set))`, 'gi'),
  new RegExp(
    String.raw`(?:missing|requires?|required|specify|provide|expected)(?: the)?(?: required)?(?: query)? (?:parameter|field|argument)s?:? ${NAME}`,
    'gi',
  ),
  new RegExp(String.raw`${NAME} must be`, 'gi'),
  new RegExp(String.raw`(?:parameter|field|argument|query option) ${NAME}`, 'gi'),
];
/** "expand must be department." KINDS are words in that place that name a kind of value, not a value. */
const CONSTANT = new RegExp(String.raw`${NAME} must (?:be|equal) ["'\x60]?([\w.:-]{1,40})["'\x60]?\s*(?:[.!]|$)`, 'i');
const KINDS =
  /^(an?|the|integer|number|string|numeric|positive|present|given|set|specified|provided|valid|unique|one|between|at|less|greater|in|not|of|non-\w+|boolean|true|false|\d+)$/i;
const NO_NAMES = /^(parameter|parameters|field|it|this|value|which|that|paging|one|query|header|id|be|is|the|a)$/i;

/** Reads the parameters that a service requires from its refusal. */
export function wantedBy(sentence: string | undefined): Wanted {
  if (sentence === undefined) return { names: [], constants: {} };
  const names = NAMING.flatMap((pattern) => [...sentence.matchAll(pattern)].map(([, name]) => name!.replace(/[.]$/, '')));
  const [, name, value] = CONSTANT.exec(sentence) ?? [];
  const isConstant = name !== undefined && value !== undefined && !KINDS.test(value) && !NO_NAMES.test(name);
  return {
    names: [...new Set(names)].filter((each) => !NO_NAMES.test(each)),
    constants: isConstant ? { [name]: value.replace(/[.]$/, '') } : {},
  };
}
