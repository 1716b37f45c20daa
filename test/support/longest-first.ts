import { BaseSequencer, type TestSequencerConstructor, type TestSpecification } from 'vitest/node';

/** Begins with these files, in this order: a file that takes minutes would otherwise run on alone at the end. By the path in `test`, without its ending. */
export function longestFirst(...paths: readonly string[]): TestSequencerConstructor {
  const rank = ({ moduleId }: TestSpecification) => {
    const at = paths.findIndex((path) => moduleId.endsWith(`/test/${path}.test.ts`));
    return at === -1 ? paths.length : at;
  };
  return class extends BaseSequencer {
    override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
      // oxlint-disable-next-line unicorn/no-array-sort -- a method of the sequencer, and of no array
      const sorted = await super.sort(files);
      return sorted.toSorted((one, other) => rank(one) - rank(other));
    }
  };
}
