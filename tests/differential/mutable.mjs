// The public gateway adds headers to answers that it passes on as they came, which recent versions of Node do not allow
// of an answer that was fetched. It gets a copy that it may change; nothing else of it is touched.
const fetched = globalThis.fetch;

globalThis.fetch = async (...request) => {
    const { body, status, statusText, headers } = await fetched(...request);
    return new Response(body, { status, statusText, headers });
};
