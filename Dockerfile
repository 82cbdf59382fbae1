# One image for every role; the command names it: `docker run roost:local gateway`. `make image` builds it.
#
# It runs as a user of its own, writes to /var/lib/roost and nowhere else (start it with a read-only root and a
# volume or tmpfs there), and needs no shell: the entry point is the program, signals reach it.

FROM python:3.12-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN python -m venv /opt/roost \
 && /opt/roost/bin/pip install --no-cache-dir --no-compile '.[postgres,mariadb,grpc,otel,dns,nats,kafka]'

FROM python:3.12-slim
ARG VERSION=0.1.0
LABEL org.opencontainers.image.title="roost" \
      org.opencontainers.image.description="A session control plane for stateful servers" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}"
COPY --from=build /opt/roost /opt/roost
RUN ["python", "-c", "import os; os.makedirs('/var/lib/roost', 0o700); os.chown('/var/lib/roost', 10001, 10001)"]
ENV PATH=/opt/roost/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HOME=/var/lib/roost \
    ROOST_DATA=/var/lib/roost
USER 10001:10001
WORKDIR /var/lib/roost
STOPSIGNAL SIGTERM
EXPOSE 8400 8410 8411 8420 8430 8440 9400 9410 9420 9430 9440
ENTRYPOINT ["roost"]
CMD ["--help"]
