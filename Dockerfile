# Muster's image: the operator (`muster run`) and the submitter (`muster submit`) in one.
#
# The build needs no network: build/wheels holds Muster's wheel and all it depends on (`make wheels`, part of
# `make image`). BASE_IMAGE is any image with CPython 3.11 and its venv module.
ARG BASE_IMAGE=python:3.11-slim-bookworm

FROM ${BASE_IMAGE} AS build
COPY build/wheels /wheels
RUN python3 -m venv /opt/muster \
    && /opt/muster/bin/pip install --no-index --no-cache-dir --find-links=/wheels muster \
    && /opt/muster/bin/pip uninstall --yes --quiet pip
RUN ["/opt/muster/bin/muster", "--version"]

FROM ${BASE_IMAGE}
COPY --from=build /opt/muster /opt/muster
ENV PATH=/opt/muster/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
# No user of this number need exist: nothing is looked up by name and nothing is written to disk.
USER 65532:65532
ENTRYPOINT ["muster"]
CMD ["run"]
