/** happy-dom has no XPath; htmx uses it to look for hx-on attributes, which we do not use. */
Object.assign(globalThis, {
  XPathEvaluator: class {
    createExpression(): unknown {
      return { evaluate: () => ({ iterateNext: () => null }) };
    }
  },
});
