# The service in a container that runs as a user of its own on a read-only file system; see docs/serving.md.
FROM python:3.11-slim-bookworm AS build
WORKDIR /source
COPY . .
RUN python -m venv /opt/trilens \
    && /opt/trilens/bin/pip install --no-cache-dir ".[faiss,serve]" \
    && /opt/trilens/bin/pip uninstall --yes pip setuptools

FROM python:3.11-slim-bookworm
RUN useradd --uid 10001 --no-create-home --home-dir /var/cache/trilens --shell /usr/sbin/nologin trilens \
    && install --directory --owner=trilens --group=trilens /collections /var/cache/trilens
COPY --from=build /opt/trilens /opt/trilens
ENV PATH=/opt/trilens/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    XDG_CACHE_HOME=/var/cache \
    NUMBA_CACHE_DIR=/var/cache/trilens/numba
USER 10001
# Fails if the image does not work, and compiles all kernels into the cache.
RUN trilens doctor && trilens warmup
VOLUME ["/collections", "/var/cache/trilens"]
WORKDIR /collections
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8000/api/v1/ready', timeout=4)"]
ENTRYPOINT ["trilens"]
CMD ["serve", "my.trilens", "--host", "0.0.0.0"]
